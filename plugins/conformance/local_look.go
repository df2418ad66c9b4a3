package conformance

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// How cases about local stores look at what is kept. Two records are equal when they have the same members with the same
// bytes, in whatever order; a manifest comes back as the text that it is.

// everyRow reads what there is of some keys, through the readers.
func everyRow(c *C, store ports.LocalStore, keys ...string) (rows []ports.Row) {
	one := func(row ports.Row, err error) {
		switch ports.CodeOf(err) {
		case "":
			rows = append(rows, row)
		case ports.NotFound:
		default:
			c.Fatalf("read by key: %s", faultText(err))
		}
	}
	every := func(page func(after *ports.Cursor) (ports.Page, error)) {
		for after := (*ports.Cursor)(nil); ; {
			p, err := page(after)
			if err != nil {
				c.Fatalf("list: %s", faultText(err))
			}
			rows = append(rows, p.Rows...)
			if after = p.Next; after == nil {
				return
			}
		}
	}
	for _, key := range keys {
		one(store.Item(c.Ctx, key))
		every(func(after *ports.Cursor) (ports.Page, error) {
			return store.Events(c.Ctx, ports.EventQuery{Key: key, After: after, Bodies: true})
		})
		every(func(after *ports.Cursor) (ports.Page, error) {
			return store.Attempts(c.Ctx, ports.AttemptQuery{Key: key, After: after})
		})
		one(store.Manifest(c.Ctx, key))
	}
	return rows
}

// recordID tells records apart.
type recordID struct {
	kind   ports.Kind
	key    string // of an event its GUID
	number int64
}

func idOf(r *ports.Row) recordID {
	if r.Kind == ports.KindEvent {
		return recordID{kind: r.Kind, key: r.GUID}
	}
	return recordID{r.Kind, r.Key, r.Number}
}

func (id recordID) String() string {
	if id.kind == ports.KindAttempt {
		return fmt.Sprintf("%s %s %d", id.kind, id.key, id.number)
	}
	return fmt.Sprintf("%s %s", id.kind, id.key)
}

// shelf is a set of rows by their records.
type shelf map[recordID]ports.Row

func shelfOf(rows []ports.Row) shelf {
	s := shelf{}
	for i := range rows {
		s[idOf(&rows[i])] = rows[i]
	}
	return s
}

// take applies a row as a follower does.
func (s shelf) take(r *ports.Row) {
	if r.Gone {
		delete(s, idOf(r))
		return
	}
	s[idOf(r)] = *r
}

// sameShelf complains where two sets of rows differ.
func (c *C) sameShelf(what string, got, want shelf) {
	for _, id := range want.ids() {
		w, g := want[id], got[id]
		if _, there := got[id]; !there {
			c.Errorf("%s: %s is missing", what, id)
			continue
		}
		if difference := rowDifference(&g, &w); difference != "" {
			c.Errorf("%s: %s: %s", what, id, difference)
		}
	}
	for _, id := range got.ids() {
		if _, there := want[id]; !there {
			c.Errorf("%s: %s is there and must not be", what, id)
		}
	}
}

func (s shelf) ids() []recordID {
	ids := make([]recordID, 0, len(s))
	for id := range s {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b recordID) int {
		return cmp.Or(cmp.Compare(slices.Index(ports.Kinds, a.kind), slices.Index(ports.Kinds, b.kind)), strings.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	})
	return ids
}

// rowDifference says in what a row is not the wanted one, "" where it is.
func rowDifference(got, want *ports.Row) string {
	switch {
	case got.Key != want.Key:
		return fmt.Sprintf("it belongs to key %q, want %q", got.Key, want.Key)
	case got.Gone != want.Gone:
		return fmt.Sprintf("gone is %t, want %t", got.Gone, want.Gone)
	case got.Change != want.Change:
		return fmt.Sprintf("it was changed last by %+v, want %+v", got.Change, want.Change)
	case got.First != want.First:
		return fmt.Sprintf("its first write fixed %+v, want %+v", got.First, want.First)
	case want.Gone:
		return ""
	}
	return bodyDifference(want.Kind, got.Body, want.Body)
}

// bodyDifference says in what a body is not the wanted one, "" where it is.
func bodyDifference(k ports.Kind, got, want []byte) string {
	if k == ports.KindManifest {
		if !bytes.Equal(bytes.TrimSpace(got), bytes.TrimSpace(want)) {
			return fmt.Sprintf("it is %s, want the text %s", brief(got), brief(want))
		}
		return ""
	}
	table := ports.TableOf(k)
	have, err := ports.ParseRecord(table, got)
	if err != nil {
		return fmt.Sprintf("its body %s %v", brief(got), err)
	}
	wish, err := ports.ParseRecord(table, want)
	if err != nil {
		return fmt.Sprintf("the suite wants what is no record: %v", err)
	}
	if !have.Same(wish) {
		return fmt.Sprintf("it has the members %s, want %s", brief(got), brief(want))
	}
	return ""
}

// brief is a text as a message shows it.
func brief(text []byte) string {
	const most = 400
	if len(text) > most {
		return fmt.Sprintf("%s... (%d bytes)", strings.ToValidUTF8(string(text[:most]), ""), len(text))
	}
	return string(text)
}
