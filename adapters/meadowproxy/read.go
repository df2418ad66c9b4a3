package meadowproxy

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Reads by key, and the events and attempts of a key.

// item reads a work item, manifest a manifest; see ports.ItemReader and ports.ManifestReader.
func (w *way) item(ctx context.Context, key string) (ports.Row, error) {
	return w.one(ctx, layouts[ports.KindItem], key)
}

func (w *way) manifest(ctx context.Context, key string) (ports.Row, error) {
	return w.one(ctx, layouts[ports.KindManifest], key)
}

// mostReadings bounds how often rows are read that others replace at the same moment.
const mostReadings = 4

var errReplaced = ports.Errorf(ports.Unavailable, opRead, "the parts of a large text are replaced again and again, or lost")

func (w *way) one(ctx context.Context, l *layout, key string) (ports.Row, error) {
	if key == "" {
		return ports.Row{}, ports.Errorf(ports.NotFound, opRead, "there is no %s with this key", l.table.Kind)
	}
	for range mostReadings {
		var found *shown
		damaged := false
		for _, a := range w.asksFor(l, l.natural, key) {
			err := w.each(ctx, a, func(s *shown) {
				damaged = damaged || s.key != key && strings.Contains(s.key, string(replacement))
				if s.key == key && !s.deleted() {
					found = s
				}
			})
			if err != nil {
				return ports.Row{}, err
			}
		}
		if found == nil && damaged {
			return ports.Row{}, lostOn(l.natural)
		}
		if found == nil {
			return ports.Row{}, ports.Errorf(ports.NotFound, opRead, "there is no %s with this key", l.table.Kind)
		}
		again, err := w.complete(ctx, ports.ClassRead, []*shown{found}, false)
		if err != nil {
			return ports.Row{}, err
		}
		if !again {
			return found.row(false)
		}
	}
	return ports.Row{}, errReplaced
}

// asksFor asks for the rows that have a key in a column, whole and in no order that counts.
func (w *way) asksFor(l *layout, name, key string) []*ask {
	forms := w.forms(l.table.Name, name, key)
	if plainForms(forms) {
		a := &ask{class: ports.ClassRead, layout: l, limit: manyRows}
		a.filter.any(name, forms)
		a.filter.by(false, l.identity)
		return []*ask{a}
	}
	var asks []*ask
	for _, form := range forms {
		asks = append(asks, &ask{class: ports.ClassRead, layout: l, column: name, by: form})
	}
	return asks
}

// attempts lists the attempts of an item; see ports.AttemptReader. There are few.
func (w *way) attempts(ctx context.Context, q ports.AttemptQuery) (ports.Page, error) {
	rows, err := w.allOf(ctx, layouts[ports.KindAttempt], q.Key)
	if err != nil {
		return ports.Page{}, err
	}
	slices.SortFunc(rows, func(a, b *shown) int { return cmp.Compare(a.number, b.number) })
	if q.After != nil {
		rows = slices.DeleteFunc(rows, func(s *shown) bool { return s.number <= q.After.Num })
	}
	return pageOf(rows, newPager(q.Limit), false)
}

// allOf reads all rows of a key, whole.
func (w *way) allOf(ctx context.Context, l *layout, key string) ([]*shown, error) {
	for range mostReadings {
		var rows []*shown
		for _, a := range w.asksFor(l, l.table.Key, key) {
			err := w.each(ctx, a, func(s *shown) {
				if s.key == key && !s.deleted() && !slices.ContainsFunc(rows, func(other *shown) bool { return other.id == s.id }) {
					rows = append(rows, s)
				}
			})
			if err != nil {
				return nil, err
			}
		}
		again, err := w.complete(ctx, ports.ClassRead, rows, false)
		if err != nil || !again {
			return rows, err
		}
	}
	return nil, errReplaced
}

// events lists the events of an item; see ports.EventReader.
func (w *way) events(ctx context.Context, q ports.EventQuery) (ports.Page, error) {
	l := layouts[ports.KindEvent]
	form := w.forms(l.table.Name, l.table.Key, q.Key)[0]
	if sayable(form) {
		list := &listing{
			way: w, layout: l, lean: !q.Bodies, desc: q.Desc, after: q.After,
			narrow: func(f *filter) { f.is(l.table.Key, form) },
			check:  func(s *shown, _ *ports.Record) bool { return s.key == q.Key },
		}
		return list.page(ctx, newPager(q.Limit))
	}
	rows, err := w.allOf(ctx, l, q.Key)
	if err != nil {
		return ports.Page{}, err
	}
	order := func(a, b ports.Cursor) int {
		by := cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key))
		if q.Desc {
			return -by
		}
		return by
	}
	slices.SortFunc(rows, func(a, b *shown) int { return order(a.cursor(), b.cursor()) })
	if q.After != nil {
		rows = slices.DeleteFunc(rows, func(s *shown) bool { return order(s.cursor(), *q.After) <= 0 })
	}
	return pageOf(rows, newPager(q.Limit), !q.Bodies)
}

// cursor is a row's place in the list of its kind.
func (s *shown) cursor() ports.Cursor {
	switch s.layout.table.Kind {
	case ports.KindEvent:
		return ports.Cursor{Sort: s.column("OrderKey"), Key: s.guid}
	case ports.KindAttempt:
		return ports.Cursor{Sort: s.key, Key: s.key, Kind: ports.KindAttempt, Num: s.number}
	}
	return ports.Cursor{Sort: s.column(s.layout.sort), Key: s.key}
}

// pager fills one page.
type pager struct {
	page  ports.Page
	limit int
	bytes int
	last  ports.Cursor
}

// Limits of a page, in rows, and what of a row travels beside its body.
const (
	usualPage   = 500
	longestPage = 5000
	besideBody  = 200
)

func newPager(limit int) *pager {
	if limit <= 0 {
		limit = usualPage
	}
	return &pager{limit: min(limit, longestPage)}
}

// add takes a row, or says that the page is full and where the next one begins.
func (p *pager) add(row ports.Row, at ports.Cursor) (full bool) {
	size := len(row.Body) + len(row.Key) + besideBody
	if n := len(p.page.Rows); n == p.limit || n > 0 && p.bytes+size > ports.MaxPageBytes {
		next := p.last
		p.page.Next = &next
		return true
	}
	p.page.Rows = append(p.page.Rows, row)
	p.bytes += size
	p.last = at
	return false
}

// pageOf makes a page of rows that are in order.
func pageOf(rows []*shown, p *pager, lean bool) (ports.Page, error) {
	for _, s := range rows {
		row, err := s.row(lean)
		if err != nil {
			return ports.Page{}, err
		}
		if p.add(row, s.cursor()) {
			break
		}
	}
	return p.page, nil
}

// moreRows is how many rows are fetched after some were: many at once where they are small.
func (p *pager) moreRows(some int) int {
	usual := p.bytes / max(1, len(p.page.Rows))
	return max(1, min(4*some, ports.MaxPageBytes/2/max(1, usual), mostIdentities, p.limit+1))
}
