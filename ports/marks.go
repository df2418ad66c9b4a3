package ports

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Which write of a hub set which member of a row, and how a row keeps that.

// retold is the count of a stamp that was made of a record's own time.
const retold = math.MaxUint64

// toldStamp is the stamp of a record that is sent again: just before the time that it tells, so that the live write which
// reported the same moment is not older.
func toldStamp(r *Record, member string) Stamp {
	key, ok := TimeKey(r.Text(member))
	if !ok {
		return Stamp{}
	}
	at, err := time.Parse(time.RFC3339Nano, key)
	if err != nil {
		return Stamp{}
	}
	return Stamp{Ms: at.UnixMilli() - 1, Count: retold}
}

// marks are the stamps of a row's members, by name. A member without one was set by nobody whose writes are ordered.
type marks map[string]Stamp

// The text of marks is a list of groups: a stamp's two numbers, then the names of the members that it set. The first group names
// nobody: it is that of all other members. Numbers 0, 0 are no stamp.

// marksOf reads the marks of a record. A text that is none says nothing.
func marksOf(text string, r *Record) marks {
	m := marks{}
	if text == "" {
		return m
	}
	var groups [][]json.RawMessage
	if json.Unmarshal([]byte(text), &groups) != nil {
		return m
	}
	others := Stamp{}
	for i, g := range groups {
		if len(g) < 2 {
			return marks{}
		}
		var s Stamp
		var faulty [2]error
		s.Ms, faulty[0] = strconv.ParseInt(string(g[0]), 10, 64)
		s.Count, faulty[1] = strconv.ParseUint(string(g[1]), 10, 64)
		if faulty[0] != nil || faulty[1] != nil {
			return marks{}
		}
		if i == 0 {
			others = s
		}
		for _, raw := range g[2:] {
			name, _ := Unquote(raw)
			m[name] = s
		}
	}
	for name := range r.names {
		if _, named := m[name]; !named {
			m[name] = others
		}
	}
	for name, s := range m {
		if s.IsZero() {
			delete(m, name)
		}
	}
	return m
}

// text writes the marks of a record, as short as it can be: the largest group is the first.
func (m marks) text(r *Record) string {
	if len(m) == 0 {
		return ""
	}
	var order []Stamp
	groups := map[Stamp][]string{}
	for name := range r.names {
		s := m[name]
		if groups[s] == nil {
			order = append(order, s)
		}
		groups[s] = append(groups[s], name)
	}
	if len(order) == 0 || len(order) == 1 && order[0].IsZero() {
		return ""
	}
	largest := order[0]
	for _, s := range order[1:] {
		if len(groups[s]) > len(groups[largest]) {
			largest = s
		}
	}
	groups[largest] = nil
	slices.SortStableFunc(order, func(a, b Stamp) int { return cmp.Compare(bit(b == largest), bit(a == largest)) })
	b := []byte("[")
	for i, s := range order {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = strconv.AppendInt(b, s.Ms, 10)
		b = append(b, ',')
		b = strconv.AppendUint(b, s.Count, 10)
		for _, name := range groups[s] {
			b = append(b, ',')
			b = AppendQuoted(b, name)
		}
		b = append(b, ']')
	}
	return string(append(b, ']'))
}

func bit(is bool) int {
	if is {
		return 1
	}
	return 0
}

// names gives the name of every member, the known ones first.
func (r *Record) names(yield func(string) bool) {
	for at, value := range r.Cols {
		if value != nil && !yield(r.Table.Members[at].Name) {
			return
		}
	}
	for _, m := range r.Extra {
		if !yield(m.Name) {
			return
		}
	}
}

// one is the text of a row whose members all have the same stamp.
func (s Stamp) one() string {
	if s.IsZero() {
		return ""
	}
	return "[[" + strconv.FormatInt(s.Ms, 10) + "," + strconv.FormatUint(s.Count, 10) + "]]"
}

// whole reads the stamp of a row that has one for all.
func whole(text string) Stamp {
	inner, opened := strings.CutPrefix(text, "[[")
	inner, closed := strings.CutSuffix(inner, "]]")
	ms, count, two := strings.Cut(inner, ",")
	if !opened || !closed || !two {
		return Stamp{}
	}
	s := Stamp{}
	s.Ms, _ = strconv.ParseInt(ms, 10, 64)
	s.Count, _ = strconv.ParseUint(count, 10, 64)
	return s
}
