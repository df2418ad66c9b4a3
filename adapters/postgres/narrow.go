package postgres

import (
	"math/bits"
	"strings"
	"unicode/utf8"

	"holdfast/ports"
)

// An index of PostgreSQL takes no row beyond 2,704 bytes. A key may have 2,048 of them, so what stands beside it in an index is cut
// at 512: the column then shows the beginning of the text, and all of it stands in $raw. Filters must compare what was cut alike, see
// shown.
const shortBytes = 512

func (l *layout) tooLong(at int, value any) bool {
	if l.short&(1<<at) == 0 {
		return false
	}
	text, _ := value.(string)
	return len(text) > shortBytes
}

// shown is a text as an indexed column shows it.
func shown(text string) string {
	if len(text) <= shortBytes {
		return text
	}
	cut := shortBytes
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut]
}

// project gives a record's row, as ports.Record.Project does, with long texts of indexed columns cut.
func (l *layout) project(r *ports.Record, first ports.First) ports.Columns {
	c := r.Project(first)
	var cut []ports.Member
	for set := l.short; set != 0; set &= set - 1 {
		at := bits.TrailingZeros64(set)
		if !l.tooLong(at, c.Values[at]) {
			continue
		}
		c.Values[at] = shown(c.Values[at].(string))
		if r.Cols[at] != nil && l.Extra >= 0 {
			cut = append(cut, ports.Member{Name: l.Names[at], Value: r.Cols[at]})
		}
	}
	if len(cut) > 0 {
		c.Extra = withRaw(c.Extra, cut)
	}
	return c
}

// withRaw puts members into the $raw of an Extra, unless they are there.
func withRaw(extra string, cut []ports.Member) string {
	var b strings.Builder
	b.WriteByte('{')
	began := false
	comma := func() {
		if began {
			b.WriteByte(',')
		}
		began = true
	}
	raw := func(present []byte) {
		comma()
		b.WriteString(`"$raw":{`)
		known := map[string]bool{}
		inner := false
		one := func(name, value []byte) error {
			if inner {
				b.WriteByte(',')
			}
			inner = true
			b.Write(name)
			b.WriteByte(':')
			b.Write(value)
			known[string(name)] = true
			return nil
		}
		if present != nil {
			_ = ports.ScanObject(present, ports.MaxDepth+1, one) // Project wrote it
		}
		for _, m := range cut {
			if name := ports.AppendQuoted(nil, m.Name); !known[string(name)] {
				_ = one(name, m.Value)
			}
		}
		b.WriteByte('}')
	}
	done := false
	if extra != "" {
		_ = ports.ScanObject([]byte(extra), ports.MaxDepth+2, func(name, value []byte) error {
			if string(name) == `"$raw"` {
				raw(value)
				done = true
				return nil
			}
			if string(name) != `"$absent"` && !done { // the order of Project
				raw(nil)
				done = true
			}
			comma()
			b.Write(name)
			b.WriteByte(':')
			b.Write(value)
			return nil
		})
	}
	if !done {
		raw(nil)
	}
	b.WriteByte('}')
	return b.String()
}
