package tabletest

import (
	"fmt"
	"strings"
	"testing"

	"holdfast/ports"
)

func positionOfAnotherHistory(t *testing.T, e *Engine) {
	s := e.fresh(t)
	Commit(t, s, UpsertOf(1, "a", `{}`), UpsertOf(2, "b", `{}`), UpsertOf(3, "c", `{}`))
	Restart(t, s, "n", "epoch-2", 3, map[ports.Family]uint64{ports.Queue: 2}) // went back to 2
	b := BatchOf([]ports.Entry{UpsertOf(3, "d", `{}`), UpsertOf(4, "e", `{}`)})
	b.Epoch = "epoch-2"
	if _, err := TryCommit(s, b); err != nil {
		t.Fatal(err)
	}
	e.SetMark(t, s, ports.Queue, Other, 7)
	standing, err := s.Stand(t.Context(), Host)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		after ports.Position
		want  ports.Code
	}{
		"the beginning":                         {ports.Position{}, ""},
		"a zero of an unknown epoch":            {ports.Position{Epoch: "x", Seqs: map[string]uint64{Host: 0}}, ""},
		"the head":                              {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{Host: 4}}, ""},
		"an earlier Seq of the newest epoch":    {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{Host: 1}}, ""},
		"the last of an Epoch before":           {ports.Position{Epoch: Epoch, Seqs: map[string]uint64{Host: 2}}, ""},
		"one that the store left an Epoch with": {ports.Position{Epoch: Epoch, Seqs: map[string]uint64{Host: 3}}, ports.Conflict},
		"an unknown epoch":                      {ports.Position{Epoch: "x", Seqs: map[string]uint64{Host: 1}}, ports.Conflict},
		"no epoch":                              {ports.Position{Seqs: map[string]uint64{Host: 1}}, ports.Conflict},
		"beyond the store":                      {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{Host: 5}}, ports.Conflict},
		"another Host's head":                   {ports.Position{Seqs: map[string]uint64{Other: 7}}, ""},
		"beyond another Host's mark":            {ports.Position{Seqs: map[string]uint64{Other: 8}}, ports.Conflict},
		"a Host without a mark":                 {ports.Position{Seqs: map[string]uint64{Stranger: 99}}, ""},
		"another StoreID":                       {ports.Position{StoreID: "x", Epoch: "epoch-2", Seqs: map[string]uint64{Host: 4}}, ""},
	} {
		for _, key := range []string{"", "a"} {
			page, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue, After: c.after, Key: key})
			if ports.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if c.want == "" && (page.End == nil || page.End.Epoch != "epoch-2" || page.End.StoreID != standing.StoreID || page.End.Seqs[Host] != 4 || page.End.Seqs[Other] < 7) {
				t.Errorf("%s: ends at %+v", name, page.End)
			}
			if n := page.Through.Seqs[Stranger]; c.want == "" && n != c.after.Seqs[Stranger] {
				t.Errorf("%s: a Host that nobody knows is at %d", name, n)
			}
		}
	}
}

func nothingToldBeforeOpen(t *testing.T, e *Engine) {
	place := e.Places(t)(t)
	s := place(t)
	Admit(t, s, "")
	Commit(t, s, UpsertOf(1, "a", `{}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("closed: %v", err)
	}
	again := opened(t, place)
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("before Open: %v", err)
	}
	if err := again.Open(t.Context(), ports.Opening{HostID: Host, Nonce: "not it", Next: "x"}); ports.CodeOf(err) != ports.Conflict {
		t.Fatal(err)
	}
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("after a refused Open: %v", err)
	}
	Admit(t, again, "n")
	if page, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); err != nil || len(page.Rows) != 1 {
		t.Errorf("after Open: %+v, %v", page, err)
	}
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("of no family: %v", err)
	}
}

func emptyEndsAtOnce(t *testing.T, e *Engine) {
	s := e.fresh(t)
	page, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Manifest})
	if err != nil || len(page.Rows) != 0 || page.End == nil || page.End.Epoch != Epoch || len(page.End.Seqs) != 0 || page.Dropped != nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// A record stands where it was changed last, and nowhere else.
func changesDuringAWalk(t *testing.T, e *Engine) {
	s := e.fresh(t)
	Commit(t, s, UpsertOf(1, "a", `{"n":1}`), UpsertOf(2, "b", `{"n":1}`), UpsertOf(3, "c", `{"n":1}`))
	first := Changes(t, s, ports.ChangesQuery{Family: ports.Queue, Limit: 1})
	Commit(t, s, PatchOf(4, "a", `{"n":2}`))
	rest, end := Walk(t, s, ports.ChangesQuery{Family: ports.Queue, After: first.Through, Limit: 1}, func() {})
	if keys := fmt.Sprint(KeysOf(ports.Page{Rows: append(first.Rows, rest...)})); keys != "[a b c a]" || string(rest[2].Body) != `{"n":2}` || end.Seqs[Host] != 4 {
		t.Errorf("told %s, then the end %v", keys, end)
	}
}

// Were a page read from more than one state of the file, it would pass over what came between them.
func followerMissesNothing(t *testing.T, e *Engine) {
	s := e.fresh(t)
	writes := uint64(e.Writes)
	entryOf := func(n uint64) ports.Entry { // items and events in turn
		if n%2 == 0 {
			return EventOf(n, "w", fmt.Sprint("g", n), `{}`)
		}
		return UpsertOf(n, fmt.Sprint("k", n%7), fmt.Sprintf(`{"n":%d}`, n))
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for n := uint64(1); n <= writes && err == nil; n++ {
			_, err = TryCommit(s, BatchOf([]ports.Entry{entryOf(n)}))
		}
		done <- err
	}()
	copied := map[string]string{}
	q := ports.ChangesQuery{Family: ports.Queue}
	for q.After.Seqs[Host] < writes {
		rows, end := Walk(t, s, q, func() {})
		for _, r := range rows {
			copied[r.Key+r.GUID] = string(r.Body)
		}
		q.After = end
		head := end.Seqs[Host]
		for n := head; n > 0 && n+14 > head; n-- {
			key, want := fmt.Sprint("k", n%7), fmt.Sprintf(`{"n":%d}`, n)
			if n%2 == 0 {
				guid := fmt.Sprint("g", n)
				key, want = "w"+guid, fmt.Sprintf(`{"EventGUID":%q}`, guid)
			}
			if copied[key] != want {
				t.Fatalf("at %d the copy has %s of %s, want %s", head, copied[key], key, want)
			}
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func changesCutByBytes(t *testing.T, e *Engine) {
	s := e.fresh(t)
	body := func(mib int) string { return fmt.Sprintf(`{"Settings":%q}`, strings.Repeat("x", mib<<20)) }
	Commit(t, s, UpsertOf(1, "a", body(7)), UpsertOf(2, "b", body(7)), UpsertOf(3, "c", body(7)), UpsertOf(4, "huge", body(20)))
	rows := []ports.Row{ // two records of one Seq, which no page may part
		{Kind: ports.KindItem, Key: "d", Body: []byte(body(9)), Change: ports.Change{Host: Stranger, Seq: 1}},
		{Kind: ports.KindEvent, Key: "d", GUID: "g", Body: []byte(body(9)), Change: ports.Change{Host: Stranger, Seq: 1}},
		{Kind: ports.KindItem, Key: "e", Body: []byte(`{}`), Change: ports.Change{Host: Stranger, Seq: 2}},
	}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var pages []string
	q := ports.ChangesQuery{Family: ports.Queue}
	for end := false; !end; {
		page := Changes(t, s, q)
		pages = append(pages, strings.Join(KeysOf(ports.Page{Rows: page.Rows}), ""))
		q.After, end = page.Through, page.End != nil
	}
	if got := strings.Join(pages, " "); got != "ab c huge dd e" {
		t.Errorf("pages are %s", got)
	}
}

func forgottenRemovals(t *testing.T, e *Engine) {
	s := e.fresh(t)
	e.LimitGraves(t, s, 2)
	var seq uint64
	remove := func(key string) {
		Commit(t, s, EntryOf(seq+1, ports.UpsertManifest, key, `{}`))
		Commit(t, s, EntryOf(seq+2, ports.RemoveManifest, key, ""))
		seq += 2
	}
	remove("a")
	remove("b")
	if page := Changes(t, s, ports.ChangesQuery{Family: ports.Manifest}); page.Dropped != nil || len(page.Rows) != 2 {
		t.Errorf("within the limit: %+v", page)
	}
	remove("c")
	remove("d")
	gone := ports.Row{Kind: ports.KindManifest, Gone: true, Change: ports.Change{Host: Stranger}}
	var rows []ports.Row
	for i, key := range []string{"p", "q", "r"} {
		gone.Key, gone.Change.Seq = key, uint64(i+5)
		rows = append(rows, gone)
	}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Manifest, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	page := Changes(t, s, ports.ChangesQuery{Family: ports.Manifest})
	if len(page.Rows) != 2 || page.Dropped[Host] != seq || page.Dropped[Stranger] < 5 || len(page.Dropped) != 2 {
		t.Errorf("dropped %v, left %+v", page.Dropped, page.Rows)
	}
	if page := Changes(t, s, ports.ChangesQuery{Family: ports.Queue}); page.Dropped != nil {
		t.Errorf("of the other family: %v", page.Dropped)
	}
}
