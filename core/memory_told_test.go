package core

import (
	"slices"
	"testing"

	"holdfast/ports"
)

// The store in memory is held to what it promises of changes: other tests build on it.

// told is an open store in memory with a few writes of two hosts, of which one wrote several records under one Seq.
func told(t *testing.T, scene func(t *testing.T, s *stage)) {
	t.Helper()
	play(t, func(t *testing.T, s *stage) {
		for _, key := range []string{"a", "b", "c"} {
			s.does(upsert(key, "Pending"), Done)
		}
		s.does(patch("a", "Complete"), Done)
		s.store.writesAs(otherHost,
			ports.Entry{Action: ports.UpsertWorkItem, Key: "x", Record: []byte(`{"WorkItemHash":"x"}`)},
			ports.Entry{Action: ports.AppendEvent, Key: "x", EventGUID: "g", Record: []byte(`{"WorkItemHash":"x"}`)},
			ports.Entry{Action: ports.UpsertWorkItem, Key: "y", Record: []byte(`{"WorkItemHash":"y"}`)})
		scene(t, s)
	})
}

func (s *stage) changesAfter(p ports.Position, limit int) (ports.ChangePage, error) {
	return s.store.Changes(s.t.Context(), ports.ChangesQuery{Family: ports.Queue, After: p, Limit: limit})
}

func TestTheStoreInMemoryTellsEveryChangeOnceInPagesOfAnySize(t *testing.T) {
	t.Parallel()
	told(t, func(t *testing.T, s *stage) {
		for limit := range 8 {
			var got []string
			var at ports.Position
			for {
				page, err := s.changesAfter(at, limit)
				if err != nil {
					t.Fatal(err)
				}
				for _, row := range page.Rows {
					got = append(got, string(row.Kind)+" "+row.Key)
				}
				at = page.Through
				if page.End != nil {
					break
				}
			}
			slices.Sort(got)
			if want := []string{"Event x", "WorkItem a", "WorkItem b", "WorkItem c", "WorkItem x", "WorkItem y"}; !slices.Equal(got, want) {
				t.Errorf("in pages of %d: %v", limit, got)
			}
			if at.Seqs[s.state.who.ID] != 4 || at.Seqs[otherHost] != 1 || at.StoreID != "store-1" {
				t.Errorf("in pages of %d the end is %+v", limit, at)
			}
		}
	})
}

func TestTheStoreInMemoryKnowsAPositionOfAnotherHistory(t *testing.T) {
	t.Parallel()
	told(t, func(t *testing.T, s *stage) {
		page, err := s.changesAfter(ports.Position{}, 0)
		if err != nil || page.End == nil {
			t.Fatal(err)
		}
		before := *page.End
		s.again() // opens an epoch from 5 on
		s.does(upsert("d", "Pending"), Done)
		s.does(upsert("e", "Pending"), Done)
		of := func(epoch string, seq, other uint64) ports.Position {
			return ports.Position{Epoch: epoch, Seqs: map[string]uint64{s.state.who.ID: seq, otherHost: other}}
		}
		now := s.journals[ports.Queue].Bounds().Epoch
		for name, c := range map[string]struct {
			at   ports.Position
			want ports.Code
		}{
			"nothing":                        {ports.Position{}, ""},
			"the end before":                 {before, ""},
			"the end now":                    {of(now, 6, 1), ""},
			"an old Seq in the newest epoch": {of(now, 2, 0), ""},
			"no epoch":                       {of("", 2, 0), ports.Conflict},
			"an unknown epoch":               {of("none", 2, 0), ports.Conflict},
			"beyond the store":               {of(now, 7, 1), ports.Conflict},
			"beyond the other host":          {of(now, 6, 2), ports.Conflict},
			"a Seq after the epoch was left": {of(before.Epoch, 5, 1), ports.Conflict},
		} {
			if _, err := s.changesAfter(c.at, 0); ports.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	})
}

func TestTheStoreInMemoryTellsRemovalsUntilItForgetsThem(t *testing.T) {
	t.Parallel()
	told(t, func(t *testing.T, s *stage) {
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run"}}`), Done)
		s.does(call(ports.RemoveManifest, `{"RunHash":"run"}`), Done)
		ask := func() ports.ChangePage {
			page, err := s.store.Changes(t.Context(), ports.ChangesQuery{Family: ports.Manifest})
			if err != nil {
				t.Fatal(err)
			}
			return page
		}
		page := ask()
		if len(page.Rows) != 1 || !page.Rows[0].Gone || page.Rows[0].Key != "run" || page.Rows[0].Change.Seq != 2 || len(page.Dropped) != 0 {
			t.Errorf("a removal is told as %+v", page)
		}
		s.store.mu.Lock()
		s.store.disk.forget(ports.KindManifest, "run")
		s.store.mu.Unlock()
		if page = ask(); len(page.Rows) != 0 || page.Dropped[s.state.who.ID] != 2 {
			t.Errorf("a forgotten removal is told as %+v", page)
		}
	})
}

func TestTheStoreInMemoryTakesRowsBackAndWalksThem(t *testing.T) {
	t.Parallel()
	told(t, func(t *testing.T, s *stage) {
		rows := s.store.look().rows(kindsOf(ports.Queue)...)
		other := newDisk("store-2")
		if n, err := other.put(rows); n != len(rows) || err != nil {
			t.Fatal(n, err)
		}
		s.store.kill(func(*disk) *disk { return other })
		s.in(s.store.back)
		var walked []string
		for after := (*ports.Cursor)(nil); ; {
			page, err := s.store.Export(t.Context(), ports.ExportQuery{Family: ports.Queue, After: after, Limit: 2})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Rows {
				walked = append(walked, string(row.Kind)+" "+row.Key)
			}
			if after = page.Next; after == nil {
				break
			}
		}
		if want := []string{"WorkItem a", "WorkItem b", "WorkItem c", "WorkItem x", "Event x", "WorkItem y"}; !slices.Equal(walked, want) {
			t.Errorf("the walk gives %v", walked)
		}
		for _, row := range rows {
			held := other.held[placeOfRow(&row)]
			back := other.row(placeOfRow(&row), held)
			if !sameRow(&row, &back) {
				t.Errorf("%+v is taken back as %+v", row, back)
			}
		}
	})
}
