package stock

// DataBeaconManagement and DataBeaconAccess: connections, introspection, endpoints.

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// endpointKey is one table of one connection.
type endpointKey struct {
	connection int64
	table      string
}

// endpoint is a table that is served at a base. Its columns are those that introspection knew when it was mounted.
type endpoint struct {
	connection int64
	table      string
	columns    []knownColumn
}

// tableSettings are those of most actions here.
type tableSettings struct {
	IDBeaconConnection json.RawMessage
	TableName          string
	Cap                json.RawMessage
	Begin              json.RawMessage
	SQL                string
}

func (d *Databeacon) tableCall(s json.RawMessage) (settings tableSettings, c *connection, db *database, failed string) {
	_ = json.Unmarshal(s, &settings) // what has the wrong type is missing
	if c, failed = d.liveConnection(settings.IDBeaconConnection); failed != "" {
		return settings, nil, nil, failed
	}
	db, err := d.database(c.ID)
	if err != nil {
		return settings, nil, nil, err.Error()
	}
	return settings, c, db, ""
}

// liveConnection finds the connection of a setting, which may be a number or a text.
func (d *Databeacon) liveConnection(raw json.RawMessage) (c *connection, failed string) {
	id := whole(raw)
	if id < 1 {
		return nil, "IDBeaconConnection is required."
	}
	if c = d.saved.connection(id); c == nil {
		return nil, fmt.Sprintf("Connection %d not found.", id)
	}
	if !d.live[id] {
		return nil, fmt.Sprintf("Connection %d is not connected.", id)
	}
	return c, ""
}

func whole(raw json.RawMessage) int64 {
	text := strings.Trim(string(raw), `"`)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (d *Databeacon) createConnection(s json.RawMessage) (outputs any, failed string) {
	var settings struct {
		Name        string
		Type        string
		Config      json.RawMessage
		AutoConnect bool
	}
	_ = json.Unmarshal(s, &settings) // what has the wrong type is missing
	if settings.Name == "" || settings.Type == "" {
		return nil, "Name and Type are required."
	}
	var config struct{ SQLiteFilePath string }
	var text string
	if json.Unmarshal(settings.Config, &text) == nil {
		settings.Config = json.RawMessage(text)
	}
	_ = json.Unmarshal(settings.Config, &config) // only SQLite has a file
	c, created, err := d.addConnection(settings.Name, config.SQLiteFilePath, settings.AutoConnect)
	if err != nil {
		return nil, err.Error()
	}
	if settings.AutoConnect {
		d.connect(c)
	}
	return map[string]any{
		"IDBeaconConnection": c.ID, "Name": c.Name, "Type": settings.Type, "Created": created, "Connected": d.live[c.ID],
	}, ""
}

func (d *Databeacon) introspect(s json.RawMessage) (outputs any, failed string) {
	settings, c, db, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	names := []string{settings.TableName}
	if settings.TableName == "" {
		all, err := db.names()
		if err != nil {
			return nil, err.Error()
		}
		names = all
	}
	type looked struct {
		TableName   string
		ColumnCount int
		Columns     []knownColumn
	}
	tables := []looked{}
	for _, name := range names {
		t, err := db.table(name)
		if err != nil {
			return nil, err.Error()
		}
		if t == nil {
			return nil, "Table " + name + " not found."
		}
		columns := d.describe(t)
		c.learn(name, columns)
		tables = append(tables, looked{name, len(columns), columns})
	}
	if err := d.save(); err != nil {
		return nil, err.Error()
	}
	return map[string]any{"TableCount": len(tables), "Tables": tables}, ""
}

// describe is a table as introspection tells it.
func (d *Databeacon) describe(t *table) (columns []knownColumn) {
	for _, c := range t.columns {
		k := knownColumn{Name: c.name, Nullable: !c.notNull, IsPrimaryKey: c.primary, IsAutoIncrement: c.primary, MeadowType: d.meadowType(c)}
		if c.primary {
			k.Nullable = d.options.Manner == SQLite // which tells of no NOT NULL there
		}
		k.NativeType, k.MaxLength, k.DefaultValue = d.engine.native(t, c)
		columns = append(columns, k)
	}
	return columns
}

func (d *Databeacon) meadowType(c *column) string {
	switch {
	case c.primary:
		return "AutoIdentity"
	case c.name == "CreateDate", c.name == "UpdateDate", c.name == "Deleted":
		return c.name
	}
	switch c.kind {
	case kindInteger, kindDecimal:
		return "Numeric"
	case kindBool:
		return "Boolean"
	case kindDate:
		return "DateTime"
	case kindID, kindText:
	}
	return "String"
}

// introspectPackage is a table as the library behind the endpoints describes one.
func (d *Databeacon) introspectPackage(s json.RawMessage) (outputs any, failed string) {
	settings, c, db, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	t, err := db.table(settings.TableName)
	if err != nil {
		return nil, err.Error()
	}
	if t == nil {
		return nil, "Table " + settings.TableName + " not found."
	}
	e := &endpoint{connection: c.ID, table: t.name, columns: d.describe(t)}
	schema := []json.RawMessage{}
	for _, k := range e.columns {
		size := ""
		if k.MaxLength != nil {
			size = strconv.FormatInt(*k.MaxLength, 10)
		}
		schema = append(schema, object{{"Column", of(k.Name)}, {"Type", of(k.MeadowType)}, {"Size", of(size)}}.json())
	}
	return map[string]any{"Package": object{
		{"Scope", of(t.name)}, {"DefaultIdentifier", of(idColumn(e))}, {"Schema", value{raw: array(schema)}}, {"DefaultObject", value{raw: defaults(e).json()}},
	}.json()}, ""
}

func base(c *connection, table string) string { return "/1.0/" + slug(c.Name, c.ID) + "/" + table }

// serve enables a table. A base that another connection has already is that one's: its table answers.
func (d *Databeacon) serve(c *connection, t *knownTable) {
	d.enabled[endpointKey{c.ID, t.Name}] = true
	at := base(c, t.Name)
	if d.mounts[at] == nil {
		d.mounts[at] = &endpoint{connection: c.ID, table: t.Name, columns: t.Columns}
	}
}

func (d *Databeacon) enableEndpoint(s json.RawMessage) (outputs any, failed string) {
	settings, c, _, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	if settings.TableName == "" {
		return nil, "TableName is required."
	}
	t := c.table(settings.TableName)
	if t == nil {
		return nil, "Table " + settings.TableName + " not introspected."
	}
	if len(t.Columns) == 0 {
		return nil, "Table " + settings.TableName + " has no columns."
	}
	if d.enabled[endpointKey{c.ID, t.Name}] {
		return map[string]any{"Message": "Endpoint already enabled.", "TableName": t.Name}, ""
	}
	t.Enabled = true
	d.serve(c, t)
	if err := d.save(); err != nil {
		return nil, err.Error()
	}
	return map[string]any{"TableName": t.Name, "EndpointBase": base(c, t.Name), "ColumnCount": len(t.Columns)}, ""
}

// disableEndpoint forgets that a table is enabled; its routes stay.
func (d *Databeacon) disableEndpoint(s json.RawMessage) (outputs any, failed string) {
	settings, c, _, failed := d.tableCall(s)
	if failed != "" {
		return nil, failed
	}
	delete(d.enabled, endpointKey{c.ID, settings.TableName})
	if t := c.table(settings.TableName); t != nil {
		t.Enabled = false
	}
	if err := d.save(); err != nil {
		return nil, err.Error()
	}
	return map[string]any{"TableName": settings.TableName, "Disabled": true}, ""
}

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
