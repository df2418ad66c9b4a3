package tabletest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// A plain list of everything that a store holds, tombstones included, says what a walk through the changes must tell.

// Told is a record as far as a follower cares.
type Told struct {
	kind   ports.Kind
	key    string
	guid   string
	number int64
}

// ToldOf names the record of a row.
func ToldOf(r *ports.Row) Told {
	if r.GUID != "" {
		return Told{kind: r.Kind, guid: r.GUID}
	}
	return Told{r.Kind, r.Key, "", r.Number}
}

// Everything lists what a store holds of a family, tombstones included.
func (e *Engine) Everything(t Failer, s Store, f ports.Family) []ports.Row {
	t.Helper()
	var rows []ports.Row
	var after *ports.Cursor
	for {
		page, err := s.Export(context.Background(), ports.ExportQuery{Family: f, After: after})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, page.Rows...)
		if after = page.Next; after == nil {
			break
		}
	}
	for _, r := range e.Tombstones(t, s) {
		if r.Kind.Family() == f {
			rows = append(rows, r)
		}
	}
	return rows
}

// inOrder is the order in which changes are told; exact settles what that leaves open.
func inOrder(a, b ports.Row) int {
	rank := func(r *ports.Row) int {
		if r.Gone {
			return -1
		}
		return slices.Index(ports.Kinds, r.Kind)
	}
	return cmp.Or(cmp.Compare(a.Change.Host, b.Change.Host), cmp.Compare(a.Change.Seq, b.Change.Seq), cmp.Compare(rank(&a), rank(&b)))
}

func exact(a, b ports.Row) int {
	return cmp.Or(inOrder(a, b), cmp.Compare(a.Key, b.Key), cmp.Compare(a.GUID, b.GUID), cmp.Compare(a.Number, b.Number))
}

// since leaves what was changed after a position, of one key or of all.
func since(rows []ports.Row, p ports.Position, key string) []ports.Row {
	var later []ports.Row
	for _, r := range rows {
		if r.Change.Seq > p.Seqs[r.Change.Host] && (key == "" || r.Key == key) {
			later = append(later, r)
		}
	}
	return later
}

// Changes gives one page of changes.
func Changes(t Failer, s Store, q ports.ChangesQuery) ports.ChangePage {
	t.Helper()
	page, err := s.Changes(context.Background(), q)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

// Walk walks from a position to the end, with something happening between the pages, and checks each page by itself.
func Walk(t Failer, s Store, q ports.ChangesQuery, between func()) (rows []ports.Row, end ports.Position) {
	t.Helper()
	for {
		page := Changes(t, s, q)
		groups := 0
		for i, r := range page.Rows {
			if r.Change.Seq <= q.After.Seqs[r.Change.Host] || r.Change.Seq > page.Through.Seqs[r.Change.Host] {
				t.Fatalf("%+v is outside of what the page says, %v to %v", r.Change, q.After.Seqs, page.Through.Seqs)
			}
			if i == 0 || r.Change != page.Rows[i-1].Change {
				if q.Limit > 0 && i >= q.Limit {
					t.Fatalf("a page of %d begins another Seq after %d rows", q.Limit, i)
				}
				groups++
			}
		}
		rows = append(rows, page.Rows...)
		if page.End != nil {
			if fmt.Sprint(*page.End) != fmt.Sprint(page.Through) {
				t.Fatalf("ends at %v, but through is %v", *page.End, page.Through)
			}
			return rows, *page.End
		}
		if q.Limit > 0 && len(page.Rows) < q.Limit || groups == 0 {
			t.Fatalf("a page of %d has %d rows and is not the last", q.Limit, len(page.Rows))
		}
		q.After = page.Through
		between()
	}
}

func sameRows(t Failer, what string, got, want []ports.Row) {
	t.Helper()
	if !slices.IsSortedFunc(got, inOrder) {
		t.Fatalf("%s: out of order: %.2000s", what, fmt.Sprint(got))
	}
	slices.SortFunc(got, exact)
	slices.SortFunc(want, exact)
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
			t.Fatalf("%s: row %d of %d, want %d\ngot  %.2000s\nwant %.2000s", what, i, len(got), len(want), fmt.Sprint(got[min(i, len(got)):]), fmt.Sprint(want[min(i, len(want)):]))
		}
	}
}

// history writes to a store as hosts do.
type history struct {
	e    *Engine
	t    *rapid.T
	s    Store
	last map[ports.Family]map[string]uint64 // highest Seq by host
}

func (h *history) write() {
	family := rapid.SampledFrom(ports.Families).Draw(h.t, "family")
	if rapid.IntRange(0, 3).Draw(h.t, "who") == 0 {
		h.put(family)
		return
	}
	entries := rapid.SliceOfN(someEntry(family), 1, 12).Draw(h.t, "entries")
	for i := range entries {
		h.last[family][Host]++
		entries[i].Seq = h.last[family][Host]
	}
	if _, err := TryCommit(h.s, BatchOf(entries)); err != nil {
		h.t.Fatal(err)
	}
}

// put lets another host's changes come in, some of them of records that are there and some in one Seq, and its mark with them.
func (h *history) put(family ports.Family) {
	who := rapid.SampledFrom([]string{Other, Stranger, ""}).Draw(h.t, "other host")
	var rows []ports.Row
	h.last[family][who]++
	for range rapid.IntRange(1, 6).Draw(h.t, "rows") {
		r := ports.Row{Kind: ports.KindManifest, Key: rapid.SampledFrom(someKeys).Draw(h.t, "key"), Body: []byte(`{"put":1}`)}
		if family == ports.Queue {
			r.Kind = rapid.SampledFrom(ports.Kinds[:3]).Draw(h.t, "kind")
			r.GUID, r.Number = "", 0
			switch r.Kind {
			case ports.KindEvent:
				r.GUID = rapid.SampledFrom([]string{"g1", "g2", "p1", "p2", "p3"}).Draw(h.t, "guid")
			case ports.KindAttempt:
				r.Number = rapid.Int64Range(1, 3).Draw(h.t, "number")
			}
		}
		if tables.Buried(r.Kind) && rapid.IntRange(0, 2).Draw(h.t, "gone") == 0 {
			r.Gone, r.Body = true, nil
		}
		if rapid.Bool().Draw(h.t, "next Seq") {
			h.last[family][who]++
		}
		r.Change = ports.Change{Host: who, Seq: h.last[family][who]}
		rows = append(rows, r)
	}
	if _, err := h.s.Put(context.Background(), ports.Batch{Family: family, Rows: rows}); err != nil {
		h.t.Fatal(err)
	}
	if who == Other {
		h.e.SetMark(h.t, h.s, family, Other, h.last[family][Other])
	}
}

func walkTellsWhatChanged(t *testing.T, e *Engine) {
	places := e.Places(t)
	rapid.Check(t, func(t *rapid.T) {
		s := places(t)(t)
		defer func() { _ = s.Close() }()
		Admit(t, s, "")
		h := &history{e: e, t: t, s: s, last: map[ports.Family]map[string]uint64{ports.Queue: {}, ports.Manifest: {}}}
		// followers are copies of the store, each as of the end of its last walk.
		type follower struct {
			at   ports.Position
			rows map[Told]ports.Row
		}
		followers := map[ports.Family]*follower{}
		for _, f := range ports.Families {
			followers[f] = &follower{rows: map[Told]ports.Row{}}
		}
		for range rapid.IntRange(1, min(e.Rounds, 4)).Draw(t, "rounds") {
			for range rapid.IntRange(1, e.Batches).Draw(t, "writes") {
				h.write()
			}
			for _, f := range ports.Families {
				limit := rapid.IntRange(0, 9).Draw(t, "limit")
				all := e.Everything(t, s, f)
				from := ports.Position{Epoch: Epoch, Seqs: map[string]uint64{}}
				for _, who := range slices.Sorted(maps.Keys(h.last[f])) {
					from.Seqs[who] = rapid.Uint64Range(0, h.last[f][who]).Draw(t, "from")
				}
				rows, _ := Walk(t, s, ports.ChangesQuery{Family: f, After: from, Limit: limit}, func() {})
				sameRows(t, "from anywhere", rows, since(all, from, ""))
				key := rapid.SampledFrom(someKeys).Draw(t, "of key")
				rows, _ = Walk(t, s, ports.ChangesQuery{Family: f, Key: key, Limit: limit}, func() {})
				sameRows(t, "of one key", rows, since(all, ports.Position{}, key))

				fol := followers[f]
				rows, fol.at = Walk(t, s, ports.ChangesQuery{Family: f, After: fol.at, Limit: limit}, func() {
					if rapid.Bool().Draw(t, "meanwhile") {
						h.write()
					}
				})
				for _, r := range rows {
					fol.rows[ToldOf(&r)] = r
				}
				SameAsStore(t, maps.Clone(fol.rows), e.Everything(t, s, f))
			}
		}
	})
}

// SameAsStore wants a copy to be the store; it uses the copy up.
func SameAsStore(t Failer, copied map[Told]ports.Row, all []ports.Row) {
	t.Helper()
	for _, want := range all {
		if got := copied[ToldOf(&want)]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("the copy has %+v\nwant %+v in %v", got, want, all)
		}
		delete(copied, ToldOf(&want))
	}
	if len(copied) > 0 {
		t.Fatalf("the copy has what the store has not: %+v", copied)
	}
}
