package tables

import "holdfast/ports"

// Pager fills one page and stops where it is full.
type Pager struct {
	Page  ports.Page
	Limit int
	Bytes int          // of the page so far
	Last  ports.Cursor // the place behind which the next page would begin
}

const (
	defaultLimit = 500
	maxLimit     = 5000

	// RowOverhead is about what a row takes on its way, beside its body and key.
	RowOverhead = 200
)

// NewPager begins a page of a caller's limit; 0 is the usual one.
func NewPager(limit int) *Pager {
	if limit <= 0 {
		limit = defaultLimit
	}
	return &Pager{Limit: min(limit, maxLimit)}
}

// Add takes a row, or says that the page is full and where the next one begins.
func (p *Pager) Add(row ports.Row, at ports.Cursor) (full bool) {
	size := SizeOf(&row)
	if n := len(p.Page.Rows); n == p.Limit || n > 0 && p.Bytes+size > ports.MaxPageBytes {
		p.Stop()
		return true
	}
	p.Page.Rows = append(p.Page.Rows, row)
	p.Bytes += size
	p.Last = at
	return false
}

// Stop ends the page here; the next one begins behind Last.
func (p *Pager) Stop() {
	next := p.Last
	p.Page.Next = &next
}

// SizeOf is about what a row takes on its way.
func SizeOf(row *ports.Row) int { return len(row.Body) + len(row.Key) + RowOverhead }
