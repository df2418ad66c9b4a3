package conformance

import (
	"strconv"

	"holdfast/ports"
)

// pages gives one page of a list after a cursor.
type pages func(after *ports.Cursor, limit int) (ports.Page, error)

// walk goes through a list page by page to its end. It notes what no page may do: have more rows than were asked for, or
// lead nowhere. A cursor goes through its token, as callers hold it.
func walk(c *C, limit int, next pages) (rows []ports.Row, err error) {
	var after *ports.Cursor
	idle := 0
	for {
		page, err := next(after, limit)
		if err != nil {
			return rows, err
		}
		if len(page.Rows) > limit {
			c.Errorf("a page of at most %d rows has %d", limit, len(page.Rows))
		}
		rows = append(rows, page.Rows...)
		if page.Next == nil {
			if page.Partial {
				c.Errorf("a page is partial and does not say where to go on")
			}
			return rows, nil
		}
		if idle++; len(page.Rows) > 0 {
			idle = 0
		}
		if idle > 100 || after != nil && *page.Next == *after && !page.Partial {
			c.Errorf("the pages lead nowhere: after %s comes a page of %d rows whose Next is %s", text(after), len(page.Rows), text(page.Next))
			return rows, nil
		}
		if after, err = ports.ParseCursor(page.Next.Token()); err != nil {
			return rows, err
		}
	}
}

// names tells records apart in lists: an event by its GUID, an attempt by its number, everything else by its key.
func names(rows []ports.Row) []string {
	list := make([]string, 0, len(rows))
	for _, r := range rows {
		switch r.Kind {
		case ports.KindEvent:
			list = append(list, r.GUID)
		case ports.KindAttempt:
			list = append(list, strconv.FormatInt(r.Number, 10))
		default:
			list = append(list, r.Key)
		}
	}
	return list
}

// items and manifests page through lists.
func (c *C) items(b ports.Backend, q ports.ItemQuery) pages {
	reader := powerOf[ports.ItemReader](c, b)
	return func(after *ports.Cursor, limit int) (ports.Page, error) {
		q.After, q.Limit = after, limit
		return reader.Items(c.Ctx, q)
	}
}

func (c *C) manifests(b ports.Backend, q ports.ManifestQuery) pages {
	reader := powerOf[ports.ManifestReader](c, b)
	return func(after *ports.Cursor, limit int) (ports.Page, error) {
		q.After, q.Limit = after, limit
		return reader.Manifests(c.Ctx, q)
	}
}
