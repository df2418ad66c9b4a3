package stock

// DataBeaconManagement: connections, introspection, endpoints.

import (
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

// tableSettings are those of most actions.
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
