package reference

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Item gives one work item; see ports.ItemReader.
func (s *Store) Item(ctx context.Context, key string) (ports.Row, error) {
	return s.one(ctx, ports.KindItem, key)
}

// Manifest gives one manifest, whole; see ports.ManifestReader.
func (s *Store) Manifest(ctx context.Context, key string) (ports.Row, error) {
	return s.one(ctx, ports.KindManifest, key)
}

func (s *Store) one(ctx context.Context, k ports.Kind, key string) (row ports.Row, _ error) {
	op := "read " + string(k)
	return row, s.look(ctx, op, k.Family(), func(h *half, _ *disk, _ opener) error {
		at := place{kind: k, key: key}
		record := h.held[at]
		if record == nil {
			return ports.Errorf(ports.NotFound, "reference: "+op, "there is none with this key")
		}
		row = record.row(at)
		return nil
	})
}

// Events lists the events of an item; see ports.EventReader.
func (s *Store) Events(ctx context.Context, q ports.EventQuery) (page ports.Page, _ error) {
	return page, s.look(ctx, "list events", ports.Queue, func(h *half, _ *disk, _ opener) error {
		rows := h.rows(func(at place, record *held) bool { return at.kind == ports.KindEvent && record.key == q.Key })
		page = list(without(rows, q.Bodies, "Payload"), q.Desc, q.After, q.Limit)
		return nil
	})
}

// Attempts lists the attempts of an item; see ports.AttemptReader.
func (s *Store) Attempts(ctx context.Context, q ports.AttemptQuery) (page ports.Page, _ error) {
	return page, s.look(ctx, "list attempts", ports.Queue, func(h *half, _ *disk, _ opener) error {
		rows := h.rows(func(at place, _ *held) bool { return at.kind == ports.KindAttempt && at.key == q.Key })
		page = list(rows, false, q.After, q.Limit)
		return nil
	})
}

// Items lists work items; see ports.ItemReader.
func (s *Store) Items(ctx context.Context, q ports.ItemQuery) (page ports.Page, _ error) {
	const op = "list work items"
	return page, s.look(ctx, op, ports.Queue, func(h *half, _ *disk, _ opener) error {
		rows := h.rows(func(at place, record *held) bool { return at.kind == ports.KindItem && record.passes(&q.Filter) })
		if q.OrderBy == "" {
			page = list(without(rows, q.Bodies, "Settings", "Result"), q.Desc, q.After, q.Limit)
			return nil
		}
		if !slices.ContainsFunc(slices.Concat(ports.Items.Engine, ports.Items.Members, ports.Items.Ours), func(c ports.Column) bool { return c.Name == q.OrderBy }) {
			return ports.InField(ports.Invalid, "OrderBy", "%q is no column of %s", q.OrderBy, ports.Items.Name)
		}
		h.sort(rows, q.OrderBy, q.Desc)
		page = cut(without(rows, q.Bodies, "Settings", "Result"), q.Limit, cursorOf)
		page.Next = nil
		return nil
	})
}

// passes says whether an item passes a filter.
func (record *held) passes(f *ports.ItemFilter) bool {
	for name, want := range map[string]string{
		"Capability": f.Capability, "Action": f.Action, "RunID": f.RunID, "RunHash": f.RunHash,
		"OperationHash": f.OperationHash, "AssignedBeaconID": f.AssignedBeaconID, "AffinityKey": f.AffinityKey,
	} {
		if want != "" && record.column(name) != want {
			return false
		}
	}
	status, _ := record.column("Status").(string)
	lastError, _ := record.column("LastError").(string)
	return (len(f.Status) == 0 || slices.Contains(f.Status, status)) && strings.Contains(lastError, f.ErrorText) &&
		within(record.First.EnqueuedKey, f.From, f.To)
}

// within says whether a key is in a stretch whose ends may be open.
func within(key, from, to string) bool { return key >= from && (to == "" || key < to) }

// column is the value of a column that is a member.
func (record *held) column(name string) any {
	return record.Record.Project(record.First).Values[record.Record.Table.Member(name)]
}

// sort orders items by the values of a column, equal ones by their keys.
func (h *half) sort(rows []ports.Row, column string, desc bool) {
	slices.SortFunc(rows, func(a, b ports.Row) int {
		first, second := h.held[place{kind: a.Kind, key: a.Key}], h.held[place{kind: b.Kind, key: b.Key}]
		order := cmp.Or(compare(first.value(column), second.value(column)), strings.Compare(a.Key, b.Key))
		if desc {
			order = -order
		}
		return order
	})
}

// value is what an item is sorted by: the time in a form that sorts, a member, or what the store knows of it.
func (record *held) value(column string) any {
	switch column {
	case "EnqueuedAt", "EnqueuedKey":
		return record.First.EnqueuedKey
	case "OrderKey":
		return record.First.OrderKey
	case "Actor":
		return record.First.Actor
	case "Origin":
		return record.First.Origin
	case "ChangeHost":
		return record.Change.Host
	case "ChangeSeq", "UpdateDate":
		return int64(record.Change.Seq)
	}
	if _, member := ports.Items.Place([]byte(column)); member {
		return record.column(column)
	}
	return record.First.ReceivedAt // it stands for what an engine would have noted of itself
}

// compare orders two values of one column.
func compare(a, b any) int {
	switch first := a.(type) {
	case string:
		second, _ := b.(string)
		return strings.Compare(first, second)
	case int64:
		second, _ := b.(int64)
		return cmp.Compare(first, second)
	case float64:
		second, _ := b.(float64)
		return cmp.Compare(first, second)
	}
	if a == b {
		return 0
	}
	if a == false {
		return -1
	}
	return 1
}

// without takes members off all rows, unless bodies are asked for.
func without(rows []ports.Row, bodies bool, members ...string) []ports.Row {
	for i := range rows {
		if bodies {
			break
		}
		if record, err := ports.ParseRecord(ports.TableOf(rows[i].Kind), rows[i].Body); err == nil {
			record.Drop(members...)
			rows[i].Body = record.JSON()
		}
	}
	return rows
}

// Manifests lists manifests; see ports.ManifestReader.
func (s *Store) Manifests(ctx context.Context, q ports.ManifestQuery) (page ports.Page, _ error) {
	return page, s.look(ctx, "list manifests", ports.Manifest, func(h *half, _ *disk, _ opener) error {
		rows := h.rows(func(_ place, record *held) bool {
			status, _ := record.column("Status").(string)
			return (q.OperationHash == "" || record.column("OperationHash") == q.OperationHash) &&
				(len(q.Status) == 0 || slices.Contains(q.Status, status)) && within(record.First.OrderKey, q.From, q.To)
		})
		for i := range rows {
			if !q.Bodies {
				rows[i].Body = columnsOf(h.held[place{kind: rows[i].Kind, key: rows[i].Key}].Record).JSON()
			}
		}
		page = list(rows, q.Desc, q.After, q.Limit)
		return nil
	})
}

// columnsOf is a record without the members that are no columns.
func columnsOf(r *ports.Record) *ports.Record {
	columns := ports.NewRecord(r.Table)
	copy(columns.Cols, r.Cols)
	return columns
}
