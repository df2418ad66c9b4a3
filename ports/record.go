package ports

import (
	"bytes"
	"slices"
)

// Record is a record taken apart: the raw JSON of each known member, by its place among the table's Members (nil where
// nobody gave it), and the members that are no columns, in the order in which they came. The bytes are the caller's own;
// nothing writes into them. A Record is changed only through its methods.
type Record struct {
	Table *Table
	Cols  [][]byte
	Extra []Member

	whole []byte // the text it was parsed from, while nothing has changed
}

// NewRecord makes an empty record.
func NewRecord(t *Table) *Record { return &Record{Table: t, Cols: make([][]byte, len(t.Members))} }

// ParseRecord takes a record or a patch apart. It fails with Invalid for anything but one object, for a member that stands
// twice at the top level, and for nesting deeper than MaxDepth.
func ParseRecord(t *Table, text []byte) (*Record, error) {
	r := NewRecord(t)
	if err := ScanObject(text, MaxDepth, r.Add); err != nil {
		return nil, err
	}
	r.Is(bytes.TrimSpace(text))
	return r, nil
}

// Add takes in a member as a scan gives it, its name with the quotes. It fails with Invalid for one that is there already.
func (r *Record) Add(name, value []byte) error {
	inner := name[1 : len(name)-1]
	if bytes.IndexByte(inner, '\\') >= 0 {
		plain, whole := Unquote(name)
		if !whole {
			return InField(Invalid, string(inner), "is a member name with a lone surrogate, which cannot be kept")
		}
		inner = []byte(plain)
	}
	if at, ok := r.Table.Place(inner); ok {
		if r.Cols[at] != nil {
			return InField(Invalid, string(inner), "stands twice in the record; give each member once")
		}
		r.Cols[at] = value
		return nil
	}
	if r.extra(string(inner)) >= 0 {
		return InField(Invalid, string(inner), "stands twice in the record; give each member once")
	}
	r.Extra = append(r.Extra, Member{Name: string(inner), Value: value})
	return nil
}

// Is says that the members that were added are all of those of a text.
func (r *Record) Is(text []byte) { r.whole = text }

func (r *Record) extra(name string) int {
	return slices.IndexFunc(r.Extra, func(m Member) bool { return m.Name == name })
}

// Get gives a member's raw JSON, nil where nobody gave it.
func (r *Record) Get(name string) []byte {
	if at, ok := r.Table.places[name]; ok {
		return r.Cols[at]
	}
	if i := r.extra(name); i >= 0 {
		return r.Extra[i].Value
	}
	return nil
}

// Text gives a string member decoded, and "" for every other value.
func (r *Record) Text(name string) string {
	if raw := r.Get(name); len(raw) > 0 && raw[0] == '"' {
		text, _ := Unquote(raw)
		return text
	}
	return ""
}

// Set gives a member a value and says whether that changed anything.
func (r *Record) Set(name string, value []byte) bool {
	if at, ok := r.Table.places[name]; ok {
		return r.setCol(at, value)
	}
	switch i := r.extra(name); {
	case i < 0:
		r.Extra = append(slices.Clip(r.Extra), Member{Name: name, Value: value})
	case bytes.Equal(r.Extra[i].Value, value):
		return false
	default:
		r.Extra = slices.Clone(r.Extra)
		r.Extra[i].Value = value
	}
	r.whole = nil
	return true
}

func (r *Record) setCol(at int, value []byte) bool {
	if r.Cols[at] != nil && bytes.Equal(r.Cols[at], value) {
		return false
	}
	r.Cols[at] = value
	r.whole = nil
	return true
}

// Drop takes members off.
func (r *Record) Drop(names ...string) {
	for _, name := range names {
		if at, ok := r.Table.places[name]; ok && r.Cols[at] != nil {
			r.Cols[at] = nil
			r.whole = nil
		} else if i := r.extra(name); i >= 0 {
			r.Extra = slices.Delete(slices.Clone(r.Extra), i, i+1)
			r.whole = nil
		}
	}
}

// Clone gives a copy that can be changed without changing r.
func (r *Record) Clone() *Record {
	c := *r
	c.Cols = slices.Clone(r.Cols)
	c.Extra = slices.Clip(r.Extra)
	return &c
}

// Size is the length of the record's text.
func (r *Record) Size() int64 {
	if r.whole != nil {
		return int64(len(r.whole))
	}
	size := 2
	for at, value := range r.Cols {
		if value != nil {
			size += len(r.Table.Members[at].Name) + len(value) + 4
		}
	}
	for _, m := range r.Extra {
		size += len(m.Name) + len(m.Value) + 4
	}
	return int64(size)
}

// JSON gives the record's text: the caller's own bytes while nothing was changed, else its members, known ones first.
func (r *Record) JSON() []byte {
	if r.whole != nil {
		return r.whole
	}
	dst := append(make([]byte, 0, r.Size()), '{')
	for at, value := range r.Cols {
		if value != nil {
			dst = appendMember(dst, r.Table.Members[at].Name, value)
		}
	}
	for _, m := range r.Extra {
		dst = appendMember(dst, m.Name, m.Value)
	}
	return append(dst, '}')
}

func appendMember(dst []byte, name string, value []byte) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = AppendQuoted(dst, name)
	dst = append(dst, ':')
	return append(dst, value...)
}

// Same says whether two records have the same members with the same bytes, in whatever order, but for the ignored ones.
func (r *Record) Same(other *Record, ignore ...string) bool {
	ignored := func(name string) bool { return slices.Contains(ignore, name) }
	for at, value := range r.Cols {
		if !ignored(r.Table.Members[at].Name) && !sameValue(value, other.Cols[at]) {
			return false
		}
	}
	count := 0
	for _, m := range r.Extra {
		if ignored(m.Name) {
			continue
		}
		count++
		if i := other.extra(m.Name); i < 0 || !bytes.Equal(other.Extra[i].Value, m.Value) {
			return false
		}
	}
	for _, m := range other.Extra {
		if !ignored(m.Name) {
			count--
		}
	}
	return count == 0
}

func sameValue(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// Blank says whether a raw value counts as empty where members are only filled: missing, null, "", {} or [].
func Blank(raw []byte) bool {
	switch len(raw) {
	case 0:
		return true
	case 2:
		return raw[0] == '"' || raw[0] == '{' || raw[0] == '['
	}
	if raw[0] == '{' || raw[0] == '[' {
		return len(bytes.TrimSpace(raw[1:len(raw)-1])) == 0
	}
	return string(raw) == "null"
}
