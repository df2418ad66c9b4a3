package tables

import "holdfast/ports"

// Columns is the list of columns that a row is restored from, for SELECT; lean leaves opaque bodies out.
func (l *Layout) Columns(lean bool) string {
	if lean {
		return l.Lean
	}
	return l.List
}

// Width is how many columns that are.
func (l *Layout) Width(lean bool) int {
	switch {
	case lean:
		return len(l.slim) + l.told
	case l.Whole >= 0:
		return 2 + l.told
	}
	return l.Members + l.told
}

// Restore gives the row of values as Columns gives them.
func (l *Layout) Restore(values []any, lean bool) (ports.Row, error) {
	if !lean {
		held, err := l.Held(values)
		if err != nil {
			return ports.Row{}, err
		}
		return l.Row(values, held), nil
	}
	full := make([]any, l.Members+l.told)
	for i, at := range l.slim {
		full[at] = values[i]
	}
	copy(full[l.Members:], values[len(l.slim):])
	if l.Whole >= 0 {
		return l.Row(full, l.shown(full)), nil
	}
	held, err := l.Held(full)
	if err != nil {
		return ports.Row{}, err
	}
	for _, c := range l.Table.Members {
		if c.Type == ports.Opaque {
			held.Record.Drop(c.Name)
		}
	}
	return l.Row(full, held), nil
}

// Held makes a record of a row as List gives it.
func (l *Layout) Held(row []any) (*ports.Held, error) {
	h := l.stamped(row)
	var err error
	if l.Whole >= 0 {
		text, _ := row[1].(string)
		if h.Record, err = ports.ParseRecord(l.Table, []byte(text)); err != nil {
			// Somebody else wrote this row. Its key is all that is sure, and an ordinary upsert mends it.
			key, _ := row[0].(string)
			h.Record = ports.NewRecord(l.Table)
			h.Record.Set(l.Table.Key, ports.AppendQuoted(nil, key))
		}
		return h, nil
	}
	extra, _ := row[len(row)-l.told+l.Extra-l.Members].(string)
	if h.Record, err = ports.RestoreRecord(l.Table, ports.Columns{Values: row, Extra: extra}); err != nil {
		return nil, err
	}
	if l.emitted >= 0 && h.Record.Cols[l.emitted] == nil {
		h.First.EmittedAt, _ = row[l.emitted].(string)
	}
	return h, nil
}

// Row gives a record as it is told, with the values that it was made of.
func (l *Layout) Row(values []any, h *ports.Held) ports.Row {
	r := ports.Row{Kind: l.Table.Kind, Body: h.Record.JSON(), First: h.First, Change: h.Change}
	at := func(name string) any { return values[l.Table.Member(name)] }
	if l.Whole >= 0 {
		r.Key, _ = values[0].(string) // Hash is the first column, with and without bodies
		return r
	}
	r.Key, _ = at(l.Table.Key).(string)
	switch l.Table.Kind {
	case ports.KindEvent:
		r.GUID, _ = at("EventGUID").(string)
	case ports.KindAttempt:
		r.Number, _ = at("AttemptNumber").(int64)
	}
	return r
}

// stamped takes our columns, the last of a row.
func (l *Layout) stamped(row []any) *ports.Held {
	ours := row[len(row)-l.told:]
	text := func(at int) string {
		if at < 0 {
			return ""
		}
		v, _ := ours[at-l.Members].(string)
		return v
	}
	seq, _ := ours[l.seq-l.Members].(int64)
	return &ports.Held{
		First: ports.First{
			ReceivedAt: text(l.received), OrderKey: text(l.order), EnqueuedKey: text(l.enqueued),
			Actor: text(l.actor), Origin: text(l.origin),
		},
		Change: ports.Change{Host: text(l.host), Seq: uint64(seq)},
	}
}

// shown is a manifest as its columns show it: without the members whose column is empty, since those may be members
// that nobody gave.
func (l *Layout) shown(values []any) *ports.Held {
	h := l.stamped(values)
	h.Record = ports.NewRecord(l.Table)
	for at := range l.Table.Members {
		c := &l.Table.Members[at]
		if v := values[at]; v != nil && v != c.Zero() {
			h.Record.Cols[at] = c.Append(nil, v)
		}
	}
	return h
}
