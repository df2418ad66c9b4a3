package tables

import (
	"slices"

	"holdfast/ports"
)

// Listing is a keyset list of a table, before an engine puts it into its own words. The index that begins with Column, Sort and Key
// gives the rows in order, one branch for each value of the column; Tests are what no index can answer.
type Listing struct {
	Table *ports.Table
	Sort  string // the first column of the order
	Key   string // the second: the natural key
	Desc  bool
	After *ports.Cursor
	From  string // Sort at or after, "" for any
	To    string // Sort before, "" for any

	Column string   // leads the index; "" when Sort does
	Values []string // of Column, one branch each
	Tests  []Test
}

// Test asks for any of some values of a column, or else for a text in it.
type Test struct {
	Column string
	Values []string
	Part   string
}

// maxBranches is how many values of a filter are merged along an index; more are tested row by row.
const maxBranches = 16

// ItemList says which index a list of items goes along, and what must be tested row by row.
func ItemList(q *ports.ItemQuery) Listing {
	f := &q.Filter
	l := Listing{Table: ports.Items, Sort: "EnqueuedKey", Key: "WorkItemHash", Desc: q.Desc, After: q.After, From: f.From, To: f.To}
	switch {
	case f.RunID != "":
		l.along("RunID", f.RunID)
		l.testOne("AssignedBeaconID", f.AssignedBeaconID)
		l.test("Status", f.Status)
	case f.AssignedBeaconID != "":
		l.along("AssignedBeaconID", f.AssignedBeaconID)
		l.test("Status", f.Status)
	default:
		l.alongStatus(f.Status)
	}
	l.testOne("Capability", f.Capability)
	l.testOne("Action", f.Action)
	l.testOne("RunHash", f.RunHash)
	l.testOne("OperationHash", f.OperationHash)
	l.testOne("AffinityKey", f.AffinityKey)
	if f.ErrorText != "" {
		l.Tests = append(l.Tests, Test{Column: "LastError", Part: f.ErrorText})
	}
	return l
}

// EventList is the list of an item's events.
func EventList(q *ports.EventQuery) Listing {
	l := Listing{Table: ports.Events, Sort: "OrderKey", Key: "EventGUID", Desc: q.Desc, After: q.After}
	l.along("WorkItemHash", q.Key)
	return l
}

// ManifestList is a list of manifests.
func ManifestList(q *ports.ManifestQuery) Listing {
	l := Listing{Table: ports.Manifests, Sort: "OrderKey", Key: "Hash", Desc: q.Desc, After: q.After, From: q.From, To: q.To}
	if q.OperationHash != "" {
		l.along("OperationHash", q.OperationHash)
		l.test("Status", q.Status)
	} else {
		l.alongStatus(q.Status)
	}
	return l
}

func (l *Listing) along(column string, values ...string) {
	l.Column = column
	for _, v := range values {
		if !slices.Contains(l.Values, v) {
			l.Values = append(l.Values, v)
		}
	}
}

func (l *Listing) alongStatus(values []string) {
	if len(values) > 0 && len(values) <= maxBranches {
		l.along("Status", values...)
	} else {
		l.test("Status", values)
	}
}

func (l *Listing) test(column string, values []string) {
	if len(values) > 0 {
		l.Tests = append(l.Tests, Test{Column: column, Values: values})
	}
}

func (l *Listing) testOne(column, value string) {
	if value != "" {
		l.test(column, []string{value})
	}
}

// OrderedBy is the column that a list stands in the order of when it is asked for the order of a column. Such a list has one
// page: the column's values may change while one pages.
func (l *Listing) OrderedBy(column string) (string, error) {
	switch {
	case !slices.ContainsFunc(ColumnsOf(l.Table), func(c ports.Column) bool { return c.Name == column }):
		return "", ports.InField(ports.Invalid, "OrderBy", "%q is no column of %s", column, l.Table.Name)
	case column == "EnqueuedAt":
		return l.Sort, nil // the same instants, in a form that sorts
	}
	return column, nil
}
