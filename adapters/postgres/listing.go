package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// listing is a list in SQL; tests are conditions on one column each.
type listing struct {
	tables.Listing

	layout *layout
	tests  []test
	whole  []whole
	none   bool // a filter has a text that no row can have
}

// test is a condition on one column, around the mark of its argument.
type test struct {
	before, behind string
	arg            any
}

// whole is a text so long that its column may show only its beginning; the record itself decides.
type whole struct {
	column string
	values []string
}

func listOf(l tables.Listing) *listing {
	list := &listing{Listing: l, layout: layoutOf(l.Table.Kind)}
	if l.Column != "" {
		list.Values = list.texts(l.Column, l.Values)
	}
	for _, t := range l.Tests {
		if len(t.Values) > 0 {
			list.tests = append(list.tests, test{`"` + t.Column + `" = ANY(`, `::text[])`, list.texts(t.Column, t.Values)})
			continue
		}
		list.none = list.none || !holdable(t.Part)
		list.tests = append(list.tests, test{`strpos("` + t.Column + `", `, `) > 0`, t.Part})
	}
	return list
}

// texts gives the different texts that a column shows for some values.
func (l *listing) texts(column string, values []string) (shows []string) {
	long := false
	indexed := l.layout.short&(1<<l.layout.Table.Member(column)) != 0
	for _, v := range values {
		if !holdable(v) {
			continue
		}
		if indexed {
			long = long || len(v) > shortBytes-utf8Max
			v = shown(v)
		}
		if !slices.Contains(shows, v) {
			shows = append(shows, v)
		}
	}
	if long {
		l.whole = append(l.whole, whole{column, values})
	}
	l.none = l.none || len(shows) == 0
	return shows
}

// utf8Max is how many bytes a character has at most; a text may be cut so much earlier.
const utf8Max = 4

// window gives the conditions on the order.
func (l *listing) window(m *marks) (conditions []string) {
	if l.From != "" {
		conditions = append(conditions, `"`+l.Sort+`" >= `+m.of(bound(l.From)))
	}
	if l.To != "" {
		conditions = append(conditions, `"`+l.Sort+`" < `+m.of(bound(l.To)))
	}
	if l.After != nil {
		than := ">"
		if l.Desc {
			than = "<"
		}
		conditions = append(conditions, `("`+l.Sort+`", "`+l.Key+`") `+than+` (`+m.of(bound(l.After.Sort))+`, `+m.of(bound(l.After.Key))+`)`)
	}
	return conditions
}

// sql gives the query for up to want hits among the next few rows of the list, and for the last of those rows, hit or not. Limits
// stand in the text: what is planned for any limit may not be planned for a small one.
func (l *listing) sql(few, want int, lean bool) (text string, args []any) {
	m := &marks{}
	tested := "true"
	if len(l.tests) > 0 {
		var all []string
		for _, t := range l.tests {
			all = append(all, t.before+m.of(t.arg)+t.behind)
		}
		tested = "coalesce(" + strings.Join(all, " AND ") + ", false)"
	}
	direction := " ASC"
	if l.Desc {
		direction = " DESC"
	}
	columns := `"` + l.Sort + `" AS s, "` + l.Key + `" AS k, "` + l.layout.id + `" AS id, ` + l.layout.texts(lean) + ` AS size, ` + tested + ` AS hit`
	window := strings.Join(append(l.window(m), `"Deleted" = 0`), " AND ")
	var branches []string
	for i := range max(1, len(l.Values)) {
		where := window
		if l.Column != "" {
			where = `"` + l.Column + `" = ` + m.of(l.Values[i]) + ` AND ` + where
		}
		branches = append(branches, `(SELECT `+columns+` FROM "`+l.layout.Table.Name+`" WHERE `+where+
			` ORDER BY "`+l.Sort+`"`+direction+`, "`+l.Key+`"`+direction+` LIMIT `+strconv.Itoa(few)+`)`)
	}
	text = strings.Join(branches, " UNION ALL ")
	if len(branches) > 1 {
		text += ` ORDER BY s` + direction + `, k` + direction + ` LIMIT ` + strconv.Itoa(few)
	}
	if tested == "true" {
		return `SELECT s, k, id, size, hit, 0::bigint FROM (` + text + `) AS seen`, m.args
	}
	return `SELECT s, k, id, size, hit, n FROM (SELECT s, k, id, size, hit, row_number() OVER () AS n FROM (` + text + `) AS seen) AS numbered WHERE hit OR n = ` +
		strconv.Itoa(few) + ` ORDER BY n LIMIT ` + strconv.Itoa(want), m.args
}

const (
	firstLook = 256   // rows that a search looks at in its first step
	maxLook   = 32768 // and in any later one
)

// fill fills a page along the list. Where rows must be tested it looks at them for a bounded time, and then says how far it came.
func (l *listing) fill(ctx context.Context, r *reading, p *tables.Pager, lean bool, limit time.Duration) (ports.Page, error) {
	searching := len(l.tests)+len(l.whole) > 0
	until := time.Now().Add(limit)
	for look := firstLook; !l.none; look = min(2*look, maxLook) {
		few, want := p.Limit+1, p.Limit+1
		if len(l.tests) > 0 {
			few = look
		}
		hits, last, end, err := l.find(ctx, r, few, want, lean)
		if err != nil {
			return ports.Page{}, err
		}
		full, err := l.take(ctx, r, p, hits, lean)
		if err != nil || full || end {
			return p.Page, err
		}
		p.Last, l.After = last, &last
		if searching && time.Now().After(until) {
			p.Stop()
			p.Page.Partial = true
			return p.Page, nil
		}
	}
	return p.Page, nil
}

// find looks at the next few rows. last is the last of them, end says that there are no more.
func (l *listing) find(ctx context.Context, r *reading, few, want int, lean bool) (hits []hit, last ports.Cursor, end bool, err error) {
	text, args := l.sql(few, want, lean)
	rows, end := 0, true
	err = r.query(ctx, text, func(row []any) error {
		rows++
		last.Sort, _ = row[0].(string)
		last.Key, _ = row[1].(string)
		h := hit{at: last, layout: l.layout}
		h.id, _ = row[2].(int64)
		h.size, _ = row[3].(int64)
		if matches, _ := row[4].(bool); matches {
			hits = append(hits, h)
		}
		if n, _ := row[5].(int64); n == int64(few) {
			end = false
		}
		return nil
	}, args...)
	return hits, last, end && rows < want, err
}

// take adds the rows of hits to a page, as many as fit.
func (l *listing) take(ctx context.Context, r *reading, p *tables.Pager, hits []hit, lean bool) (full bool, err error) {
	for len(hits) > 0 {
		n := fit(hits, p.Bytes)
		rows, err := r.fetch(ctx, hits[:n], lean)
		exact := rows
		if err == nil && lean && len(l.whole) > 0 {
			exact, err = r.fetch(ctx, hits[:n], false)
		}
		if err != nil {
			return false, err
		}
		for i := range rows {
			if l.exactly(&exact[i]) && p.Add(rows[i], hits[i].at) {
				return true, nil
			}
		}
		hits = hits[n:]
	}
	return false, nil
}

// exactly says whether a row has the long texts that were asked for.
func (l *listing) exactly(row *ports.Row) bool {
	for _, w := range l.whole {
		record, err := ports.ParseRecord(l.layout.Table, row.Body)
		if err != nil {
			return false
		}
		at := l.layout.Table.Member(w.column)
		if record.Cols[at] == nil {
			return false
		}
		value, _ := l.layout.Table.Members[at].Project(record.Cols[at])
		if text, _ := value.(string); !slices.Contains(w.values, text) {
			return false
		}
	}
	return true
}
