package meadowproxy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// Work items in the order of any column: one page, without a cursor, for the column's values may change while one pages.

// sorted gives that page. Numbers are sorted by the engine. So are texts where it compares their bytes, as SQLite does; the others
// know languages, and there the texts are sorted here.
func (w *way) sorted(ctx context.Context, list *listing, q *ports.ItemQuery) (ports.Page, error) {
	l, column := list.layout, q.OrderBy
	of := slices.Concat(l.table.Engine, l.table.Members, l.table.Ours)
	at := slices.IndexFunc(of, func(c ports.Column) bool { return c.Name == column })
	if at < 0 {
		return ports.Page{}, ports.InField(ports.Invalid, "OrderBy", "%q is no column of %s", column, l.table.Name)
	}
	if column == "EnqueuedAt" {
		column = l.sort // the same instants, in a form that sorts
	}
	if _, there := w.column(l.table.Name, column); !there && w.columns[l.table.Name] != nil {
		return ports.Page{}, ports.Errorf(ports.Unimplemented, opRead, "the databeacon's table has no column %s", column)
	}
	list.after = nil
	o := &ordering{listing: list, column: column, p: newPager(q.Limit), until: time.Now().Add(searching)}
	if t := of[at].Type; w.engine != engineSQLite && (t == ports.Text || t == ports.Opaque) {
		return o.here(ctx)
	}
	return o.there(ctx)
}

// ordering is a list in the order of a column.
type ordering struct {
	*listing
	p      *pager
	column string
	until  time.Time
}

// ask asks for candidates.
func (o *ordering) ask(limit int) ask {
	a := ask{class: ports.ClassRead, layout: o.layout, columns: o.keys(), limit: limit}
	o.narrow(&a.filter)
	if o.from != "" {
		a.filter.from(o.layout.sort, o.from)
	}
	if o.to != "" {
		a.filter.before(o.layout.sort, o.to)
	}
	return a
}

// there has the engine sort.
func (o *ordering) there(ctx context.Context) (ports.Page, error) {
	for begin := 0; ; {
		a := o.ask(min(asked, o.p.limit+beyond))
		a.begin = begin
		a.filter.by(o.desc, o.column, o.layout.natural, o.layout.identity)
		candidates, err := o.way.rows(ctx, &a)
		if err != nil {
			return ports.Page{}, err
		}
		begin += len(candidates)
		full, err := o.fill(ctx, candidates)
		ended := len(candidates) < a.limit
		o.p.page.Partial = !ended && !full && time.Now().After(o.until)
		if err != nil || full || ended || o.p.page.Partial {
			return o.p.page, err
		}
	}
}

// mostSorted is how many rows are sorted here. The router asks another backend for a longer list.
const mostSorted = 10_000

// here sorts the texts of all candidates, byte by byte.
func (o *ordering) here(ctx context.Context) (ports.Page, error) {
	var all []*shown
	last := int64(0)
	for {
		a := o.ask(asked)
		if !slices.Contains(a.columns, o.column) {
			a.columns = append(a.columns, o.column)
		}
		a.filter.beyond(o.layout.identity, last)
		a.filter.by(false, o.layout.identity)
		rows, err := o.way.rows(ctx, &a)
		if err != nil {
			return ports.Page{}, err
		}
		all = append(all, rows...)
		if len(rows) < a.limit {
			break
		}
		if last = rows[len(rows)-1].id; len(all) >= mostSorted {
			return ports.Page{}, ports.Errorf(ports.Unimplemented, opRead, "more than %d work items are too many to sort by %s here; narrow the list down", mostSorted, o.column)
		}
	}
	slices.SortFunc(all, func(a, b *shown) int {
		by := cmp.Or(strings.Compare(a.column(o.column), b.column(o.column)), strings.Compare(a.key, b.key))
		if o.desc {
			return -by
		}
		return by
	})
	_, err := o.fill(ctx, all)
	return o.p.page, err
}

// fill fetches candidates until the page is full.
func (o *ordering) fill(ctx context.Context, candidates []*shown) (full bool, err error) {
	some := firstRows(o.layout, o.lean, o.p.limit)
	for len(candidates) > 0 {
		n := min(some, len(candidates))
		rows, err := o.fetch(ctx, o.layout, candidates[:n], o.lean)
		if err != nil {
			return false, err
		}
		candidates = candidates[n:]
		for _, s := range rows {
			if !o.wants(s) {
				continue
			}
			if full, err := o.take(o.p, s); full || err != nil {
				o.p.page.Next = nil
				return full, err
			}
		}
		some = o.p.moreRows(some)
	}
	return false, nil
}
