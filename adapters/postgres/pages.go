package postgres

import (
	"context"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/ports"
)

// A page is made in two steps that see one snapshot: find where its rows are and how large, then fetch those that fit. So a page of
// few large rows costs the server no more than what is sent, and no cursor is left open when it ends early.

// hit is where a row stands.
type hit struct {
	at     ports.Cursor
	layout *layout
	id     int64
	size   int64 // of its texts, about that of its body
}

// fit counts the hits from the front that are worth fetching for a page with some bytes in it: those that begin before it is full.
func fit(hits []hit, bytes int) (n int) {
	total := int64(bytes)
	for n < len(hits) && (n == 0 || total <= ports.MaxPageBytes) {
		total += hits[n].size
		n++
	}
	return n
}

// fetch gives the rows of hits, in their order.
func (r *reading) fetch(ctx context.Context, hits []hit, lean bool) ([]ports.Row, error) {
	rows := make([]ports.Row, len(hits))
	for _, l := range layouts {
		var ids []int64
		place := map[int64]int{}
		for i := range hits {
			if hits[i].layout == l {
				ids = append(ids, hits[i].id)
				place[hits[i].id] = i
			}
		}
		if len(ids) == 0 {
			continue
		}
		text := `SELECT "` + l.id + `", ` + l.Columns(lean) + ` FROM "` + l.Table.Name + `" WHERE "` + l.id + `" = ANY($1::bigint[])`
		err := r.query(ctx, text, func(row []any) (err error) {
			id, _ := row[0].(int64)
			rows[place[id]], err = l.Restore(row[1:], lean)
			return err
		}, ids)
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// texts are the columns that may be long, as a number of bytes; the server knows it without reading what it keeps aside.
func (l *layout) texts(lean bool) string {
	var parts []string
	for at, name := range l.Names {
		text := l.Types[at] == ports.Text || l.Types[at] == ports.Opaque
		left := lean && l.Types[at] == ports.Opaque || l.Whole >= 0 && (at == l.Whole) == lean
		if text && at != l.Key && !left && l.short&(1<<at) == 0 && (at < l.Members || at == l.Extra || at == l.Whole) {
			parts = append(parts, `coalesce(octet_length("`+name+`"), 0)`)
		}
	}
	return "(" + strings.Join(append(parts, "0"), " + ") + ")::bigint"
}

// holdable says whether the server can hold a text at all; no row has one that it cannot.
func holdable(text string) bool { return strings.IndexByte(text, 0) < 0 && utf8.ValidString(text) }

// bound is a text to compare with in an order; one that the server cannot hold is cut where it goes wrong.
func bound(text string) string {
	for i, c := range text {
		if c == 0 || c == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return text[:i]
		}
	}
	return text
}

// marks numbers the arguments of a statement.
type marks struct{ args []any }

func (m *marks) of(value any) string {
	m.args = append(m.args, value)
	return "$" + strconv.Itoa(len(m.args))
}
