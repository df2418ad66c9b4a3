package meadowproxy

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"holdfast/ports"
)

// Requests for rows.

// base is where a table's endpoints are.
func (w *way) base(table string) (string, error) {
	base, ok := w.bases[table]
	if !ok {
		e := ports.Errorf(ports.Unavailable, "meadowproxy", "the endpoint of %s is not known", table)
		e.Field = ports.FieldBootstrap
		return "", e
	}
	return base, nil
}

// longestPath is how long a path may be: node takes about 16 KiB with the headers.
const longestPath = 8000

// ask is a question for rows of a table.
type ask struct {
	class   ports.WorkClass
	layout  *layout
	columns []string // only these and the identity; nil for whole rows
	filter  filter
	by      string // instead of a filter: the value of the column byColumn, which may be any text
	column  string
	begin   int
	limit   int // 0 for all
}

func (a *ask) path(base string, lite bool) string {
	var p strings.Builder
	p.WriteString(base)
	p.WriteByte('s')
	if lite {
		p.WriteString("/LiteExtended/" + strings.Join(a.columns, ","))
	}
	switch {
	case a.column != "":
		p.WriteString("/By/" + a.column + "/" + escaped(a.by))
	case a.filter.text.Len() > 0:
		p.WriteString("/FilteredTo/" + a.filter.text.String())
	}
	p.WriteString("/" + strconv.Itoa(a.begin) + "/" + strconv.Itoa(a.limit))
	return p.String()
}

// rows asks for rows. The caller looks at each: whether it is one that was asked for.
func (w *way) rows(ctx context.Context, a *ask) ([]*shown, error) {
	base, err := w.base(a.layout.table.Name)
	if err != nil {
		return nil, err
	}
	lite := a.columns != nil && a.column == "" && !w.whole.Load()
	r, err := w.request(ctx, a.class, http.MethodGet, a.path(base, lite), nil, "")
	if err != nil {
		return nil, err
	}
	if lite && !a.fits(&r) { // an interface that does not shorten rows as it should gives whole ones
		if r, err = w.request(ctx, a.class, http.MethodGet, a.path(base, false), nil, ""); err != nil {
			return nil, err
		}
		if r.status == 200 {
			w.whole.Store(true)
		}
	}
	if r.status != 200 {
		f, m := r.readFault()
		return nil, f.err(opRead, m)
	}
	return w.mended(ctx, a, r.body)
}

// fits says whether an answer of shortened rows has the columns that were asked for.
func (a *ask) fits(r *reply) bool {
	if r.status != 200 {
		f, m := r.readFault()
		return m != faultForgotten || f.code != "" // an error of the database is one for whole rows too
	}
	rows, err := a.layout.readRows(r.body)
	if err != nil {
		return false
	}
	if len(rows) == 0 {
		return true
	}
	for _, c := range a.columns {
		if rows[0].raw[c] == nil {
			return false
		}
	}
	return rows[0].id > 0
}

// readRows reads a list of rows.
func (l *layout) readRows(body []byte) (rows []*shown, err error) {
	if len(body) == 0 || body[0] != '[' {
		return nil, ports.Errorf(ports.Internal, opRead, "the interface answered what is no list")
	}
	var faulty error
	err = ports.ScanItems(body, func(item []byte) {
		row, err := l.readRow(item)
		if err != nil {
			faulty = err
			return
		}
		rows = append(rows, row)
	})
	if err != nil {
		return nil, ports.Errorf(ports.Internal, opRead, "the interface answered a list that is not whole")
	}
	return rows, faulty
}

// bulkItems are the rows of a bulk answer; none where it is no list.
func bulkItems(r *reply) (items [][]byte) {
	if r.status != 200 || len(r.body) == 0 || r.body[0] != '[' {
		return nil
	}
	if ports.ScanItems(r.body, func(item []byte) { items = append(items, item) }) != nil {
		return nil
	}
	return items
}

// refusedItem says whether a row of a bulk answer is one that was not written: the interface gives it an object Error. Attempts have
// a column of that name, which is a text.
func refusedItem(s *shown) (fault []byte, refused bool) {
	raw := s.raw["Error"]
	return raw, len(raw) > 0 && (raw[0] == '{' || s.layout.table.Kind != ports.KindAttempt)
}
