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

// pager fills one page and stops where it is full.
type pager struct {
	page  ports.Page
	limit int
	bytes int
	last  ports.Cursor
}

const (
	defaultLimit = 500
	maxLimit     = 5000
	rowOverhead  = 200 // of a row on its way, beside its body and key
)

func newPager(limit int) *pager {
	if limit <= 0 {
		limit = defaultLimit
	}
	return &pager{limit: min(limit, maxLimit)}
}

// add takes a row, or says that the page is full and where the next one begins.
func (p *pager) add(row ports.Row, at ports.Cursor) (full bool) {
	size := len(row.Body) + len(row.Key) + rowOverhead
	if n := len(p.page.Rows); n == p.limit || n > 0 && p.bytes+size > ports.MaxPageBytes {
		p.stop()
		return true
	}
	p.page.Rows = append(p.page.Rows, row)
	p.bytes += size
	p.last = at
	return false
}

func (p *pager) stop() {
	next := p.last
	p.page.Next = &next
}

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
		columns := l.list
		if lean {
			columns = l.lean
		}
		text := `SELECT "` + l.id + `", ` + columns + ` FROM "` + l.table.Name + `" WHERE "` + l.id + `" = ANY($1::bigint[])`
		err := r.query(ctx, text, func(row []any) (err error) {
			id, _ := row[0].(int64)
			rows[place[id]], err = l.restore(row[1:], lean)
			return err
		}, ids)
		if err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// restore gives the row of values as the columns list, or lean, give them.
func (l *layout) restore(values []any, lean bool) (ports.Row, error) {
	if !lean {
		held, err := l.held(values)
		if err != nil {
			return ports.Row{}, err
		}
		return l.row(values, held), nil
	}
	full := make([]any, l.members+l.told)
	for i, at := range l.slim {
		full[at] = values[i]
	}
	copy(full[l.members:], values[len(l.slim):])
	if l.whole >= 0 {
		return l.row(full, l.projected(full)), nil
	}
	held, err := l.held(full)
	if err != nil {
		return ports.Row{}, err
	}
	for _, c := range l.table.Members {
		if c.Type == ports.Opaque {
			held.Record.Drop(c.Name)
		}
	}
	return l.row(full, held), nil
}

// projected is a manifest as its columns show it: without the members whose column is empty, since those may be members
// that nobody gave.
func (l *layout) projected(values []any) *ports.Held {
	h := l.stamped(values)
	h.Record = ports.NewRecord(l.table)
	for at := range l.table.Members {
		c := &l.table.Members[at]
		if v := values[at]; v != nil && v != c.Zero() {
			h.Record.Cols[at] = c.Append(nil, v)
		}
	}
	return h
}

func (l *layout) row(values []any, h *ports.Held) ports.Row {
	r := ports.Row{Kind: l.table.Kind, Body: h.Record.JSON(), First: h.First, Change: h.Change}
	at := func(name string) any { return values[l.table.Member(name)] }
	if l.whole >= 0 {
		r.Key, _ = values[0].(string) // Hash is the first column, with and without bodies
		return r
	}
	r.Key, _ = at(l.table.Key).(string)
	switch l {
	case events:
		r.GUID, _ = at("EventGUID").(string)
	case attempts:
		r.Number, _ = at("AttemptNumber").(int64)
	}
	return r
}

// texts are the columns that may be long, as a number of bytes; the server knows it without reading what it keeps aside.
func (l *layout) texts(lean bool) string {
	var parts []string
	for at, name := range l.names {
		text := l.kinds[at] == ports.Text || l.kinds[at] == ports.Opaque
		left := lean && l.kinds[at] == ports.Opaque || l.whole >= 0 && (at == l.whole) == lean
		if text && at != l.key && !left && l.short&(1<<at) == 0 && (at < l.members || at == l.extra || at == l.whole) {
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
