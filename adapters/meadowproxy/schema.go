package meadowproxy

import (
	"slices"
	"strconv"

	"holdfast/ports"
)

// The descriptor that EnsureSchema is given: the record tables with holdfast's own columns, and UVHoldfast. Its sizes are such that
// every engine can make the tables. Keys are as wide as the engine lets an indexed text be, for they can be longer than the 128
// characters of the schema's first version.

const (
	schemaName = "ultravisor"

	// wideKey is the longest key that a record can have, and the engines that can make an index over it have columns for it.
	wideKey = 512
)

type descriptor struct {
	SchemaName string
	Version    int
	Tables     []tableSpec
}

type tableSpec struct {
	Scope             string
	DefaultIdentifier string
	Domain            string
	Schema            []columnSpec
	Indexes           []indexSpec
}

type columnSpec struct{ Column, Type, Size string }

type indexSpec struct {
	Name    string
	Columns []string
	Unique  bool
}

// own is the table of what has no place in a record's table. Its columns have names that need no quotes anywhere: a databeacon writes
// none on MySQL, and Key is a word of SQL there.
var own = &ports.Table{
	Name: ownTable, Key: "Name",
	Engine: []ports.Column{
		{Name: "ID" + ownTable, Type: ports.Identity},
		{Name: "CreateDate", Type: ports.Created}, {Name: "UpdateDate", Type: ports.Updated}, {Name: "Deleted", Type: ports.Deleted},
	},
	Members: []ports.Column{{Name: "Name", Type: ports.Text, Size: keyWidth}, {Name: "Value", Type: ports.Text}},
	Indexes: []ports.Index{{Name: "IX_" + ownTable + "_Name", Columns: []string{"Name"}, Unique: true}},
}

// tablesOf are the tables behind a connection, the own one first.
func tablesOf() []*ports.Table { return slices.Concat([]*ports.Table{own}, ports.Tables) }

// describe makes the descriptor for an engine. Tables in bare are described without their indexes.
func describe(e engine, bare func(table string) bool) descriptor {
	d := descriptor{SchemaName: schemaName, Version: ports.SchemaVersion}
	for _, t := range tablesOf() {
		spec := tableSpec{Scope: t.Name, DefaultIdentifier: t.Engine[0].Name, Domain: "Ultravisor", Indexes: []indexSpec{}}
		for _, c := range wanted(e, t) {
			spec.Schema = append(spec.Schema, specOf(c))
		}
		for _, i := range t.Indexes {
			if !bare(t.Name) {
				spec.Indexes = append(spec.Indexes, indexSpec(i))
			}
		}
		d.Tables = append(d.Tables, spec)
	}
	return d
}

// wanted lists the columns of a table behind an engine.
func wanted(e engine, t *ports.Table) []ports.Column {
	if t == own {
		return slices.Concat(t.Engine[:1], t.Members, t.Engine[1:])
	}
	columns := columnsFor(t)
	for i := range columns {
		if c := &columns[i]; c.Name == t.Key || c.Name == "EventGUID" {
			c.Size = keyWidth
			if e == engineSQLite || e == enginePostgres {
				c.Size = wideKey
			}
		}
	}
	return columns
}

// specOf is a column in the words of the descriptor. What the schema's first version calls a String of the size Default is a text
// without a limit, or with the engine's own.
func specOf(c ports.Column) columnSpec {
	spec := columnSpec{Column: c.Name, Type: string(c.Type), Size: "Default"}
	switch c.Type {
	case ports.Opaque:
		spec.Type = string(ports.Text)
	case ports.Integer:
		spec.Size = "int"
	case ports.Text:
		if c.Size > 0 {
			spec.Size = strconv.Itoa(c.Size)
		}
	}
	return spec
}
