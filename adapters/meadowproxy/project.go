package meadowproxy

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"holdfast/ports"
)

// A row as it is sent. Its members become columns as ports.Record.Project says; beside that a databeacon has limits of its own (fit.go).
// Extra then has, beside what ports puts there:
//
//	$raw    also what the engine does not give back
//	$ours   our own columns that do not fit theirs, by name, and the Key and GUID where the column has another form of it
//	$parts  texts that are too large for their column: the name under which UVHoldfast has their parts, and how many
//	$odd    how many U+FFFD a column has, where it has any: a databeacon makes some of the characters that it cuts in two

// sent is a row as it is sent, but for the column that names it, whose form is chosen when it is written.
type sent struct {
	members []byte // `"RunID":"r","Status":"Pending",...`
	extra   extra
	parts   []part
}

// extra is what stands in Extra.
type extra struct {
	absent []byte // without its last bracket
	raw    []byte
	ours   []byte
	parts  []byte
	odd    []byte
	others []byte // members that have no column
}

func appendMember(dst []byte, name string, value []byte) []byte {
	if len(dst) == 0 {
		dst = append(dst, '{')
	} else {
		dst = append(dst, ',')
	}
	dst = append(ports.AppendQuoted(dst, name), ':')
	return append(dst, value...)
}

func (x *extra) text() string {
	var dst []byte
	if x.absent != nil {
		dst = appendMember(dst, "$absent", append(slices.Clip(x.absent), ']'))
	}
	for _, m := range []struct {
		name string
		list []byte
	}{{"$raw", x.raw}, {"$ours", x.ours}, {"$parts", x.parts}, {"$odd", x.odd}} {
		if m.list != nil {
			dst = appendMember(dst, m.name, append(slices.Clip(m.list), '}'))
		}
	}
	if x.others != nil {
		if dst == nil {
			dst = append(dst, '{')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, x.others[1:]...)
	}
	if dst == nil {
		return ""
	}
	return string(append(dst, '}'))
}

// replacement is what stands where a character was lost.
var replacement = []byte("\ufffd")

// whole is the text with how many U+FFFD it has itself.
func (x *extra) whole() string {
	text := x.text()
	n := strings.Count(text, string(replacement))
	if n == 0 {
		return text
	}
	counted := *x
	counted.odd = appendMember(slices.Clip(x.odd), "Extra", strconv.AppendInt(nil, int64(n), 10))
	return counted.text()
}

// project makes what is sent of a row.
func (w *way) project(l *layout, row *ports.Row) (*sent, error) {
	r, err := ports.ParseRecord(l.table, row.Body)
	if err != nil {
		return nil, err
	}
	if err := identify(l, row, r); err != nil {
		return nil, err
	}
	s := &sent{members: make([]byte, 0, quotedSize(row.Body)+1024)}
	first := row.FirstOf(r)
	columns := r.Project(first)
	for at := range l.table.Members {
		c := &l.table.Members[at]
		raw := r.Cols[at]
		exact := raw == nil
		if raw != nil {
			_, exact = c.Project(raw)
		}
		if !w.send(s, row, c, columns.Values[at], l.naming(c.Name)) || !exact {
			if raw != nil {
				s.extra.raw = appendMember(s.extra.raw, c.Name, raw)
			} else if c.Name == "EmittedAt" {
				s.extra.ours = appendMember(s.extra.ours, c.Name, ports.AppendQuoted(nil, first.EmittedAt))
			}
		}
		if raw == nil {
			s.extra.absent = append(open(s.extra.absent), ports.AppendQuoted(nil, c.Name)...)
		}
	}
	if l.whole != "" {
		w.send(s, row, &ports.Column{Name: l.whole, Type: ports.Opaque}, string(r.JSON()), false)
		w.send(s, row, &ports.Column{Name: "Live", Type: ports.Boolean}, string(r.Get("Live")) == "true", false)
	} else {
		for _, m := range r.Extra {
			name := m.Name
			if strings.HasPrefix(name, "$") {
				name = "$" + name
			}
			s.extra.others = appendMember(s.extra.others, name, m.Value)
		}
	}
	for i := range l.ours {
		c := &l.ours[i]
		if c.Name == "Extra" {
			continue
		}
		if text := stampOf(c.Name, first, row.Change); !w.send(s, row, c, text, false) && text != "" {
			s.extra.ours = appendMember(s.extra.ours, c.Name, ports.AppendQuoted(nil, text))
		}
	}
	return s, nil
}

func open(list []byte) []byte {
	if list == nil {
		return []byte{'['}
	}
	return append(list, ',')
}

// naming says whether a column names the row, so that its form is chosen later.
func (l *layout) naming(column string) bool { return column == l.table.Key || column == l.natural }

// send adds a column to what is sent, and says whether the engine gives its value back.
func (w *way) send(s *sent, row *ports.Row, c *ports.Column, value any, naming bool) (exact bool) {
	table := ports.TableOf(row.Kind).Name
	at, there := w.column(table, c.Name)
	if !there && w.columns[table] != nil {
		return false
	}
	text, exact := w.shape(at, c.Type, value)
	if naming {
		return exact
	}
	if whole, ok := value.(string); ok && (c.Type == ports.Opaque || c.Size == 0) {
		if _, room := at.room(w.engine); room > 0 && len(whole) > room {
			text = w.part(s, row, c, whole, room)
			exact = true
		}
	}
	if n := bytes.Count(text, replacement); n > 0 {
		s.extra.odd = appendMember(s.extra.odd, c.Name, strconv.AppendInt(nil, int64(n), 10))
	}
	if len(s.members) > 0 {
		s.members = append(s.members, ',')
	}
	s.members = append(ports.AppendQuoted(s.members, c.Name), ':')
	s.members = append(s.members, text...)
	return exact
}

// body is the object that is sent, under the forms of the key and the GUID that were chosen. id is 0 for a new row.
func (w *way) body(l *layout, row *ports.Row, s *sent, form string, id int64) (body []byte, parts []part) {
	x := s.extra
	body = append(make([]byte, 0, len(s.members)+512), '{')
	if id > 0 {
		body = append(append(append(body, '"'), l.identity...), `":`...)
		body = append(strconv.AppendInt(body, id, 10), ',')
	}
	name := func(column, stands, is, own string) {
		body = append(append(append(body, '"'), column...), `":`...)
		body = append(ports.AppendQuoted(body, stands), ',')
		if stands != is {
			x.ours = appendMember(slices.Clip(x.ours), own, ports.AppendQuoted(nil, is))
		}
	}
	if l.natural == l.table.Key {
		name(l.table.Key, form, row.Key, "Key")
	} else {
		name(l.natural, form, row.GUID, "GUID")
		name(l.table.Key, w.forms(l.table.Name, l.table.Key, row.Key)[0], row.Key, "Key")
	}
	body = append(body, s.members...)
	text, parts := x.whole(), s.parts
	if at, ok := w.column(l.table.Name, "Extra"); ok {
		if _, room := at.room(w.engine); room > 0 && len(text) > room {
			large := sent{extra: extra{ours: x.ours, parts: slices.Clip(x.parts)}}
			w.part(&large, row, &ports.Column{Name: "Extra"}, text, room)
			text, parts = large.extra.whole(), append(slices.Clip(parts), large.parts...)
		}
	}
	body = append(ports.AppendQuoted(append(body, `,"Extra":`...), text), '}')
	return body, parts
}

// identify gives a record the member that tells it from others of its key, and says when the two do not agree.
func identify(l *layout, row *ports.Row, r *ports.Record) error {
	if at := l.table.Member(l.table.Key); r.Cols[at] != nil {
		if v, _ := l.table.Members[at].Project(r.Cols[at]); v != row.Key {
			return ports.InField(ports.Invalid, l.table.Key, "is not the key of the row that has the record")
		}
	}
	if _, exact := numberColumn.integer(engineMySQL, row.Number); row.Kind == ports.KindAttempt && !exact {
		return &ports.Error{Code: ports.TooLarge, Field: "AttemptNumber", Message: "is too large a number for the databases behind databeacons", Limit: math.MaxInt32, Size: row.Number}
	}
	return row.Identify(r)
}

// stampOf is the value of one of our columns.
func stampOf(name string, first ports.First, change ports.Change) string {
	switch name {
	case "OrderKey":
		return first.OrderKey
	case "ReceivedAt":
		return first.ReceivedAt
	case "EnqueuedKey":
		return first.EnqueuedKey
	case "Actor":
		return first.Actor
	case "Origin":
		return first.Origin
	case "ChangeHost":
		return change.Host
	case "ChangeSeq":
		return strconv.FormatUint(change.Seq, 10)
	}
	return ""
}

// numberColumn is a column of attempt numbers in the narrowest of the engines.
var numberColumn = column{native: "int"}
