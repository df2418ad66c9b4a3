package stock

// DataBeaconAccess: what can be looked at without an endpoint.

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
)

func (d *Databeacon) listConnections(json.RawMessage) (outputs any, failed string) {
	list := []map[string]any{}
	for _, c := range d.saved.Connections {
		status := "Untested"
		if d.live[c.ID] {
			status = "Connected"
		}
		kind := map[Manner]string{SQLite: "SQLite", Postgres: "PostgreSQL", MySQL: "MySQL"}[d.options.Manner]
		list = append(list, map[string]any{
			"IDBeaconConnection": c.ID, "GUIDBeaconConnection": fmt.Sprintf("0x%08d", c.ID), "Name": c.Name, "Type": kind, "Config": "{}",
			"Status": status, "AutoConnect": c.AutoConnect, "Description": "", "LastTestedDate": nil, "Deleted": 0,
		})
	}
	return map[string]any{"Connections": list}, ""
}

func (d *Databeacon) listTables(s json.RawMessage) (outputs any, failed string) {
	_, c, _, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	list := []map[string]any{}
	for _, t := range c.Tables {
		list = append(list, map[string]any{"TableName": t.Name, "EndpointsEnabled": d.enabled[endpointKey{c.ID, t.Name}], "RowCountEstimate": 0})
	}
	return map[string]any{"Tables": list}, ""
}

func (d *Databeacon) readRecords(s json.RawMessage) (outputs any, failed string) {
	settings, c, _, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	t := c.table(settings.TableName)
	if t == nil || !d.enabled[endpointKey{c.ID, settings.TableName}] {
		return nil, "Endpoint not enabled for " + settings.TableName
	}
	e := &endpoint{connection: c.ID, table: t.Name, columns: t.Columns} // it does not go through the routes, of which another connection may have the first
	q := query{cap: 100, begin: whole(settings.Begin)}
	if n := whole(settings.Cap); n > 0 {
		q.cap = n
	}
	rows, f := d.read(e, q)
	if f != nil {
		return nil, f.text
	}
	return map[string]any{"Records": array(rows.json()), "Count": len(rows.list)}, ""
}

func (d *Databeacon) queryTable(s json.RawMessage) (outputs any, failed string) {
	settings, _, db, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	if !strings.HasPrefix(strings.ToUpper(strings.TrimSpace(settings.SQL)), "SELECT") {
		return nil, "Only SELECT queries are allowed."
	}
	list := []map[string]any{}
	err := db.each(settings.SQL, nil, func(rows *sql.Rows) error {
		names, err := rows.Columns()
		if err != nil {
			return err
		}
		values := make([]any, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		row := map[string]any{}
		for i, name := range names {
			row[name] = json.RawMessage(wholes(values[i]))
		}
		list = append(list, row)
		return nil
	})
	if err != nil {
		return nil, d.engine.other(err).text
	}
	return map[string]any{"Rows": list, "RowCount": len(list)}, ""
}
