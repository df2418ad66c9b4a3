package meadowproxy

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"

	"holdfast/ports"
)

// A row as it comes back: the reverse of project. What other programs wrote into the tables is read as well: a row without
// ChangeHost has the members whose columns are not empty.

// shown is a row as the interface shows it.
type shown struct {
	layout *layout
	raw    map[string][]byte // the JSON of each column
	id     int64
	key    string // the record's own key and GUID, whatever form stands in the columns
	guid   string
	number int64
	form   string // what stands in the column by which it is found
	change ports.Change

	extra  string // without what is only ours
	ours   map[string]string
	parts  map[string]bundle
	odd    map[string]int
	pieces map[string]string // whole texts of the columns that are in parts, once they were fetched
}

// readRow takes a row apart.
func (l *layout) readRow(text []byte) (*shown, error) {
	s := &shown{layout: l, raw: make(map[string][]byte, 64)}
	err := ports.ScanObject(text, ports.MaxDepth, func(name, value []byte) error {
		s.raw[string(name[1:len(name)-1])] = value
		return nil
	})
	if err != nil {
		return nil, ports.Errorf(ports.Internal, opRead, "the interface shows what is no row of %s", l.table.Name)
	}
	s.id = wholeNumber(s.raw[l.identity])
	s.number = wholeNumber(s.raw["AttemptNumber"])
	if err := s.readExtra(textOf(s.raw["Extra"])); err != nil {
		return nil, err
	}
	s.form = textOf(s.raw[l.natural])
	s.key = cmp.Or(s.ours["Key"], textOf(s.raw[l.table.Key]))
	if l.table.Kind == ports.KindEvent {
		s.guid = cmp.Or(s.ours["GUID"], s.form)
	}
	s.change.Host = s.column("ChangeHost")
	s.change.Seq, _ = strconv.ParseUint(s.column("ChangeSeq"), 10, 64)
	return s, nil
}

const opRead = "meadowproxy: read"

// readExtra separates what is only ours from the rest. Extra of other programs says nothing.
func (s *shown) readExtra(text string) error {
	if text == "" {
		return nil
	}
	var others []byte
	var faulty error
	err := ports.ScanObject([]byte(text), ports.MaxDepth+2, func(name, value []byte) error {
		switch plain, _ := ports.Unquote(name); plain {
		case "$ours":
			faulty = cmp.Or(faulty, json.Unmarshal(value, &s.ours))
		case "$odd":
			faulty = cmp.Or(faulty, json.Unmarshal(value, &s.odd))
		case "$parts":
			parts, err := readParts(value)
			s.parts, faulty = parts, cmp.Or(faulty, err)
		default:
			others = appendMember(others, plain, value)
		}
		return nil
	})
	if err != nil {
		s.ours, s.parts, s.odd = nil, nil, nil
		return nil //nolint:nilerr // not ours
	}
	if others != nil {
		s.extra = string(append(others, '}'))
	}
	return faulty
}

// column is the text of one of our columns.
func (s *shown) column(name string) string {
	if text, ok := s.ours[name]; ok {
		return text
	}
	raw := s.raw[name]
	if len(raw) > 0 && raw[0] != '"' && string(raw) != "null" {
		return string(raw)
	}
	return textOf(raw)
}

// deleted says whether the row was deleted softly.
func (s *shown) deleted() bool {
	return wholeNumber(s.raw["Deleted"]) != 0 || string(s.raw["Deleted"]) == "true"
}

// large lists the columns whose texts are in parts and not here yet.
func (s *shown) large(name string) (bundle, bool) {
	b, ok := s.parts[name]
	if _, fetched := s.pieces[name]; fetched {
		return bundle{}, false
	}
	return b, ok
}

// text is a column's text, put together if it was in parts.
func (s *shown) text(name string) string {
	if whole, ok := s.pieces[name]; ok {
		return whole
	}
	return s.column(name)
}

// unfold takes the Extra that was in parts.
func (s *shown) unfold() error {
	whole, ok := s.pieces["Extra"]
	if !ok {
		return nil
	}
	parts := s.parts
	if err := s.readExtra(whole); err != nil {
		return err
	}
	s.parts = parts
	s.key = cmp.Or(s.ours["Key"], s.key)
	s.guid = cmp.Or(s.ours["GUID"], s.guid)
	return nil
}

// row gives the record. lean leaves out its opaque members; of a manifest it leaves the members that are columns.
func (s *shown) row(lean bool) (ports.Row, error) {
	l := s.layout
	row := ports.Row{Kind: l.table.Kind, Key: s.key, GUID: s.guid, Number: 0, Change: s.change}
	if l.number != "" {
		row.Number = s.number
	}
	row.First = ports.First{
		ReceivedAt: s.column("ReceivedAt"), OrderKey: s.column("OrderKey"), EnqueuedKey: s.column("EnqueuedKey"), Actor: s.column("Actor"), Origin: s.column("Origin"),
	}
	if err := s.intact(&row); err != nil {
		return row, err
	}
	if l.whole != "" {
		return s.manifest(row, lean)
	}
	r, err := s.record(lean)
	if err != nil {
		return row, err
	}
	if at, ok := l.table.Place([]byte("EmittedAt")); ok && r.Cols[at] == nil && s.known() {
		row.First.EmittedAt = s.column("EmittedAt")
	}
	row.Body = r.JSON()
	return row, nil
}

// known says whether holdfast wrote the row.
func (s *shown) known() bool {
	return s.change.Host != "" || s.column("ReceivedAt") != "" || s.extra != ""
}

// intact says whether no character was lost on the way: a databeacon puts what it is answered together from pieces, and makes U+FFFD of
// a character that is cut by their border.
func (s *shown) intact(row *ports.Row) error {
	if !s.known() {
		return nil
	}
	for name, text := range s.pieces {
		if s.parts[name].name != partName(row, name, text) {
			return lostOn(name)
		}
	}
	for name, raw := range s.raw {
		if n := bytes.Count(raw, replacement); n > 0 && n != s.odd[name] && name != s.layout.natural && name != s.layout.table.Key {
			return lostOn(name)
		}
	}
	return nil
}

func lostOn(name string) error {
	return ports.Errorf(ports.Unavailable, opRead, "%s came with characters that were lost on the way, or when it was written", name)
}

func (s *shown) record(lean bool) (*ports.Record, error) {
	t := s.layout.table
	values := make([]any, len(t.Members))
	var skip []string
	for at := range t.Members {
		c := &t.Members[at]
		switch c.Name {
		case t.Key:
			values[at] = s.key
		case "EventGUID":
			values[at] = s.guid
		default:
			values[at] = s.value(c)
		}
		if c.Type == ports.Opaque && (lean || !s.known() && !isJSON(values[at])) {
			skip = append(skip, c.Name)
		}
	}
	r, err := ports.RestoreRecord(t, ports.Columns{Values: values, Extra: s.extra}, skip...)
	if err != nil || s.known() {
		return r, err
	}
	for at := range t.Members {
		c := &t.Members[at]
		switch {
		case c.Name == t.Key, c.Name == "EventGUID", c.Name == s.layout.number:
		case c.Type == ports.Opaque && !lean && r.Cols[at] == nil && values[at] != "":
			r.Set(c.Name, ports.AppendQuoted(nil, s.text(c.Name))) // a plain text
		case values[at] == c.Zero():
			r.Drop(c.Name)
		}
	}
	return r, nil
}

// isJSON says whether a text is a JSON value as others write one into a column.
func isJSON(value any) bool {
	text, _ := value.(string)
	return ports.ScanObject([]byte(`{"v":`+text+`}`), ports.MaxDepth, nil) == nil
}

// value is a column's value as ports.Column takes it.
func (s *shown) value(c *ports.Column) any {
	raw := s.raw[c.Name]
	switch c.Type {
	case ports.Integer:
		return wholeNumber(raw)
	case ports.Float:
		f, _ := strconv.ParseFloat(bare(raw), 64)
		return f
	case ports.Boolean:
		switch bare(raw) {
		case "", "0", "false", "null":
			return false
		}
		return true
	}
	return s.text(c.Name)
}

// bare is a number or a boolean, also where the engine gives it as a text.
func bare(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return textOf(raw)
	}
	return string(raw)
}

func wholeNumber(raw []byte) int64 {
	text := bare(raw)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		f, _ := strconv.ParseFloat(text, 64)
		return int64(f)
	}
	return n
}

// manifest gives a manifest. Its text is in one column, and only a list without bodies looks at the others.
func (s *shown) manifest(row ports.Row, lean bool) (ports.Row, error) {
	if !lean {
		r, err := ports.ParseRecord(s.layout.table, []byte(s.text(s.layout.whole)))
		if err == nil {
			row.Body = r.JSON()
			return row, nil
		}
		if s.known() {
			return row, ports.Wrap(ports.Internal, opRead, err)
		}
	}
	r, err := s.record(true)
	if err == nil {
		row.Body = r.JSON()
	}
	return row, err
}
