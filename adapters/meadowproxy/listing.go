package meadowproxy

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// A list in keyset order. Which rows it has is asked for first, by their keys alone: the engine sorts by its own rules, and what has
// one sort value must be put in order here, however many that are. Then the rows of the page are fetched by their identities, as many
// at a time as their size allows, and each is looked at again.
type listing struct {
	*way
	layout *layout
	lean   bool
	desc   bool
	after  *ports.Cursor
	from   string // sort at or after, "" for any
	to     string // sort before, "" for any
	narrow func(f *filter)
	check  func(s *shown, r *ports.Record) bool

	until time.Time // when a search that finds too little gives up

	parts  []segment // still to be walked, the present one first
	next   []*shown  // candidates in order, of groups that are whole
	group  []*shown  // of the present sort value
	at     string    // that value
	rows   int       // of it, as the interface shows them
	walked ports.Cursor
}

// segment is a part of a list. Rows that others wrote have nothing in the sort column, or null, which engines sort in their own ways.
type segment int

const (
	blankRows segment = iota
	sortedRows
)

// searching is how long a list looks for rows that the filter does not tell apart.
const searching = 2 * time.Second

// asked is how many keys are asked for at once.
const asked = 1000

// page fills a page.
func (l *listing) page(ctx context.Context, p *pager) (ports.Page, error) {
	l.begin(ctx)
	some := firstRows(l.layout, l.lean, p.limit)
	for {
		for len(l.next) < some && len(l.parts) > 0 {
			if err := l.more(ctx, min(asked, p.limit+beyond)); err != nil {
				return ports.Page{}, err
			}
		}
		if len(l.next) == 0 {
			return p.page, nil
		}
		chunk := l.next[:min(some, len(l.next))]
		l.next = l.next[len(chunk):]
		rows, err := l.fetch(ctx, l.layout, chunk, l.lean)
		if err != nil {
			return ports.Page{}, err
		}
		for _, row := range rows {
			full, err := l.take(p, row)
			if full || err != nil {
				return p.page, err
			}
		}
		l.walked = chunk[len(chunk)-1].cursor()
		some = p.moreRows(some)
		if time.Now().After(l.until) && len(l.next)+len(l.parts) > 0 {
			next := l.walked
			p.page.Next, p.page.Partial = &next, true
			return p.page, nil
		}
	}
}

// beyond is how many keys more than the page has rows are asked for: one tells that there is a next page, and one that the sort value
// before it has no more of them.
const beyond = 8

// begin says which parts the list has, and how long it may look.
func (l *listing) begin(ctx context.Context) {
	l.until = time.Now().Add(searching)
	if deadline, bound := ctx.Deadline(); bound {
		if half := time.Now().Add(time.Until(deadline) / 2); half.Before(l.until) {
			l.until = half
		}
	}
	l.parts = []segment{blankRows, sortedRows}
	if l.desc {
		slices.Reverse(l.parts)
	}
	dated := l.after != nil && l.after.Sort != ""
	if l.from != "" || dated && !l.desc {
		l.parts = []segment{sortedRows}
	} else if l.desc && l.after != nil && !dated {
		l.parts = []segment{blankRows}
	}
	l.enter()
}

// enter begins with a part.
func (l *listing) enter() {
	l.at, l.rows = "", 0
	if l.after != nil && len(l.parts) > 0 && l.parts[0] == sortedRows {
		l.at = l.after.Sort
	}
}

// firstRows is how many rows are fetched before one knows how large they are.
func firstRows(l *layout, lean bool, limit int) int {
	switch {
	case lean:
		return min(mostIdentities, limit+1)
	case l.whole != "":
		return min(2, limit+1)
	}
	return min(16, limit+1)
}

// mostIdentities is how many rows are fetched by their identities at once.
const mostIdentities = 400

// take adds a row that is one of the list's.
func (l *listing) take(p *pager, s *shown) (full bool, err error) {
	r, err := s.record(true)
	if err != nil {
		return false, err
	}
	if !l.check(s, r) {
		return false, nil
	}
	row, err := s.row(l.lean)
	if err != nil {
		return false, err
	}
	return p.add(row, s.cursor()), nil
}

// more asks for keys, and moves what is in order to next.
func (l *listing) more(ctx context.Context, limit int) error {
	if l.rows >= limit {
		limit = asked // many rows of one moment: the page cannot begin before their end
	}
	a := ask{class: ports.ClassRead, layout: l.layout, columns: l.keys(), begin: l.rows, limit: limit}
	l.narrow(&a.filter)
	l.bound(&a.filter)
	a.filter.by(l.desc, l.layout.sort, l.layout.identity)
	rows, err := l.way.rows(ctx, &a)
	if err != nil {
		return err
	}
	for _, s := range rows {
		if at := s.column(l.layout.sort); at != l.at {
			l.close()
			l.at, l.rows = at, 0
		}
		l.rows++
		if l.wants(s) {
			l.group = append(l.group, s)
		}
	}
	if len(rows) < a.limit {
		l.close()
		l.parts = l.parts[1:]
		l.enter()
	}
	return nil
}

// bound narrows the filter to the present part, from the present sort value on.
func (l *listing) bound(f *filter) {
	name := l.layout.sort
	if l.parts[0] == blankRows {
		f.blank(name, l.engine != engineSQLite)
		return
	}
	from, to := l.from, l.to
	if l.at != "" && l.desc {
		f.until(name, l.at)
		to = ""
	} else {
		from = max(from, l.at)
	}
	if from == "" {
		f.filled(name)
	} else {
		f.from(name, from)
	}
	if to != "" {
		f.before(name, to)
	}
}

// keys are the columns that say where a row stands.
func (l *listing) keys() []string {
	columns := []string{l.layout.sort, l.layout.place}
	if l.layout.place != l.layout.table.Key {
		columns = append(columns, l.layout.table.Key)
	}
	if l.engine != engineSQLite {
		columns = append(columns, "Extra")
	}
	return columns
}

// wants says whether a row is behind the cursor and within the bounds, and not there already.
func (l *listing) wants(s *shown) bool {
	at := s.cursor()
	if l.after != nil && l.order(at, *l.after) <= 0 {
		return false
	}
	if l.from != "" && at.Sort < l.from || l.to != "" && at.Sort >= l.to {
		return false
	}
	return !slices.ContainsFunc(l.group, func(other *shown) bool { return other.id == s.id })
}

func (l *listing) order(a, b ports.Cursor) int {
	by := cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key))
	if l.desc {
		return -by
	}
	return by
}

// close ends a group: its rows are in order.
func (l *listing) close() {
	slices.SortFunc(l.group, func(a, b *shown) int { return l.order(a.cursor(), b.cursor()) })
	l.next = append(l.next, l.group...)
	l.group = nil
}

// fetch gives the rows of candidates, in their order. One that is not the same row any more is left out.
func (w *way) fetch(ctx context.Context, l *layout, candidates []*shown, lean bool) ([]*shown, error) {
	ids := make([]int64, len(candidates))
	for i, s := range candidates {
		ids[i] = s.id
	}
	for range mostReadings {
		a := ask{class: ports.ClassRead, layout: l, limit: len(ids)}
		if lean {
			a.columns = leanColumns(l)
		}
		a.filter.numbers(l.identity, ids)
		a.filter.by(false, l.identity)
		rows, err := w.rows(ctx, &a)
		if err != nil {
			return nil, err
		}
		byID := map[int64]*shown{}
		for _, s := range rows {
			byID[s.id] = s
		}
		var found []*shown
		for _, s := range candidates {
			if now := byID[s.id]; now != nil && now.key == s.key && now.guid == s.guid && !now.deleted() {
				found = append(found, now)
			}
		}
		again, err := w.complete(ctx, ports.ClassRead, found, lean)
		if err != nil || !again {
			return found, err
		}
	}
	return nil, errReplaced
}

// leanColumns are the columns of a row without its bodies.
func leanColumns(l *layout) []string {
	var columns []string
	for _, c := range slices.Concat(l.table.Members, l.ours) {
		if c.Type != ports.Opaque {
			columns = append(columns, c.Name)
		}
	}
	return columns
}
