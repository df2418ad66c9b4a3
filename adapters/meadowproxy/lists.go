package meadowproxy

import (
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Lists of work items and manifests. What a filter says is said to the database where it can be, and tried again on every row that
// comes: on what the caller gave, and not on what stands in a column that is too narrow for it.

// is asks for a column that has a value, as far as the column can have it.
func (w *way) is(f *filter, table, name string, values ...string) {
	c, there := w.column(table, name)
	if !there && w.columns[table] != nil {
		return // the value stands in Extra
	}
	var stand []string
	size := 0
	for _, v := range values {
		v, _ = c.text(w.engine, v)
		size += len(escaped(v)) + len("FBVOR~~EQ~~") + len(name)
		if !slices.Contains(stand, v) {
			stand = append(stand, v)
		}
	}
	if len(stand) > 0 && size < longestPath/4 && !slices.Contains(stand, "") {
		f.any(name, stand)
	}
}

// holds says whether a record has one of some values in a column.
func holds(r *ports.Record, name string, values ...string) bool {
	at := r.Table.Member(name)
	text := ""
	if raw := r.Cols[at]; raw != nil {
		v, _ := r.Table.Members[at].Project(raw)
		text, _ = v.(string)
	}
	return slices.Contains(values, text)
}

// items lists work items; see ports.ItemReader.
func (w *way) items(ctx context.Context, q ports.ItemQuery) (ports.Page, error) {
	l := layouts[ports.KindItem]
	f := q.Filter
	equal := []struct{ name, value string }{
		{"Capability", f.Capability}, {"Action", f.Action}, {"RunID", f.RunID}, {"RunHash", f.RunHash},
		{"OperationHash", f.OperationHash}, {"AssignedBeaconID", f.AssignedBeaconID}, {"AffinityKey", f.AffinityKey},
	}
	list := &listing{
		way: w, layout: l, lean: !q.Bodies, desc: q.Desc, after: q.After, from: f.From, to: f.To,
		narrow: func(to *filter) {
			for _, e := range equal {
				if e.value != "" {
					w.is(to, l.table.Name, e.name, e.value)
				}
			}
			w.is(to, l.table.Name, "Status", f.Status...)
			if f.ErrorText != "" && len(escaped(f.ErrorText)) < longestPath/4 {
				c, _ := w.column(l.table.Name, "LastError")
				_, room := c.room(w.engine)
				to.contains("LastError", f.ErrorText, room > 0)
			}
		},
		check: func(s *shown, r *ports.Record) bool {
			for _, e := range equal {
				if e.value != "" && !holds(r, e.name, e.value) {
					return false
				}
			}
			return (len(f.Status) == 0 || holds(r, "Status", f.Status...)) && (f.ErrorText == "" || strings.Contains(lastError(r), f.ErrorText))
		},
	}
	if q.OrderBy == "" {
		return list.page(ctx, newPager(q.Limit))
	}
	return w.sorted(ctx, list, &q)
}

func lastError(r *ports.Record) string {
	at := r.Table.Member("LastError")
	if r.Cols[at] == nil {
		return ""
	}
	v, _ := r.Table.Members[at].Project(r.Cols[at])
	text, _ := v.(string)
	return text
}

// manifests lists manifests; see ports.ManifestReader.
func (w *way) manifests(ctx context.Context, q ports.ManifestQuery) (ports.Page, error) {
	l := layouts[ports.KindManifest]
	list := &listing{
		way: w, layout: l, lean: !q.Bodies, desc: q.Desc, after: q.After, from: q.From, to: q.To,
		narrow: func(to *filter) {
			if q.OperationHash != "" {
				w.is(to, l.table.Name, "OperationHash", q.OperationHash)
			}
			w.is(to, l.table.Name, "Status", q.Status...)
		},
		check: func(s *shown, r *ports.Record) bool {
			return (q.OperationHash == "" || holds(r, "OperationHash", q.OperationHash)) && (len(q.Status) == 0 || holds(r, "Status", q.Status...))
		},
	}
	return list.page(ctx, newPager(q.Limit))
}
