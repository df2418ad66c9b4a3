package stock

// The descriptor of a schema as EnsureSchema gets it.

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
)

type descriptor struct {
	Tables []describedTable
}

type describedTable struct {
	Scope   string
	Schema  []described
	Indexes []describedIndex
}

type described struct {
	Column   string
	Type     string
	Size     json.RawMessage
	Nullable *bool
}

type describedIndex struct {
	Name    string
	Columns []string
	Unique  bool
}

// readDescriptor refuses what is no object with a list of tables, JSON in a string too.
func readDescriptor(raw json.RawMessage) (d descriptor, ok bool) {
	var with struct{ Tables *[]describedTable }
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &with) != nil || with.Tables == nil {
		return descriptor{}, false
	}
	d.Tables = *with.Tables
	for i := range d.Tables {
		t := &d.Tables[i]
		for j := range t.Indexes {
			if t.Indexes[j].Name == "" {
				t.Indexes[j].Name = fmt.Sprintf("IX_%s_%d", t.Scope, j)
			}
		}
	}
	return d, true
}

func (t describedTable) column(name string) *described {
	for i := range t.Schema {
		if t.Schema[i].Column == name {
			return &t.Schema[i]
		}
	}
	return nil
}

var userColumn = regexp.MustCompile(`IDUser$`)

func (c described) kind() kind {
	switch c.Type {
	case "AutoIdentity":
		return kindID
	case "Integer", "ForeignKey", "Numeric", "Deleted":
		return kindInteger
	case "Float", "Decimal":
		return kindDecimal
	case "Boolean":
		return kindBool
	case "CreateDate", "UpdateDate", "DeleteDate", "DateTime":
		return kindDate
	}
	if userColumn.MatchString(c.Type) {
		return kindInteger
	}
	return kindText
}

// size is that of a String with a numeric Size; 0 makes a text.
func (c described) size() int64 {
	if c.Type != "String" {
		return 0
	}
	var text string
	if json.Unmarshal(c.Size, &text) != nil {
		text = string(c.Size)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 1 {
		return 0
	}
	return n
}

func (c described) notNull() string {
	if c.Nullable != nil && !*c.Nullable {
		return " NOT NULL"
	}
	return ""
}

// drifts says whether a second look at a column that is as described finds it changed all the same: introspection cannot tell its
// type from another.
func (c described) drifts(e engine) bool {
	switch c.Type {
	case "Float", "Decimal", "Boolean", "CreateDate", "UpdateDate", "Deleted":
		return true
	}
	return e.name() == "sqlite" && c.size() > 0
}
