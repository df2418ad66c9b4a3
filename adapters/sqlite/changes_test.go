package sqlite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/ports"
)

// started opens a store for the host once more, as its next start does.
func started(t testing.TB, s *Store, nonce, id string, from uint64, resume map[ports.Family]uint64) {
	t.Helper()
	e := ports.Epoch{ID: id, From: from}
	err := s.Open(t.Context(), ports.Opening{
		HostID: host, Nonce: nonce, Next: nonce + "n", Epochs: map[ports.Family]ports.Epoch{ports.Queue: e, ports.Manifest: e}, Resume: resume,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestAPositionOfAnotherHistoryIsRefused(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{}`), upsert(2, "b", `{}`), upsert(3, "c", `{}`))
	started(t, s, "n", "epoch-2", 3, map[ports.Family]uint64{ports.Queue: 2}) // went back to 2
	b := batchOf([]ports.Entry{upsert(3, "d", `{}`), upsert(4, "e", `{}`)})
	b.Epoch = "epoch-2"
	if _, err := tryCommit(s, b); err != nil {
		t.Fatal(err)
	}
	setMark(t, s, ports.Queue, other, 7)
	for name, c := range map[string]struct {
		after ports.Position
		want  ports.Code
	}{
		"the beginning":                         {ports.Position{}, ""},
		"a zero of an unknown epoch":            {ports.Position{Epoch: "x", Seqs: map[string]uint64{host: 0}}, ""},
		"the head":                              {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{host: 4}}, ""},
		"an earlier Seq of the newest epoch":    {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{host: 1}}, ""},
		"the last of an epoch before":           {ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: 2}}, ""},
		"one that the store left an epoch with": {ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: 3}}, ports.Conflict},
		"an unknown epoch":                      {ports.Position{Epoch: "x", Seqs: map[string]uint64{host: 1}}, ports.Conflict},
		"no epoch":                              {ports.Position{Seqs: map[string]uint64{host: 1}}, ports.Conflict},
		"beyond the store":                      {ports.Position{Epoch: "epoch-2", Seqs: map[string]uint64{host: 5}}, ports.Conflict},
		"another host's head":                   {ports.Position{Seqs: map[string]uint64{other: 7}}, ""},
		"beyond another host's mark":            {ports.Position{Seqs: map[string]uint64{other: 8}}, ports.Conflict},
		"a host without a mark":                 {ports.Position{Seqs: map[string]uint64{stranger: 99}}, ""},
		"another StoreID":                       {ports.Position{StoreID: "x", Epoch: "epoch-2", Seqs: map[string]uint64{host: 4}}, ""},
	} {
		for _, key := range []string{"", "a"} {
			page, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue, After: c.after, Key: key})
			if ports.CodeOf(err) != c.want {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
			if c.want == "" && (page.End == nil || page.End.Epoch != "epoch-2" || page.End.StoreID != s.file.storeID || page.End.Seqs[host] != 4 || page.End.Seqs[other] < 7) {
				t.Errorf("%s: ends at %+v", name, page.End)
			}
			if n := page.Through.Seqs[stranger]; c.want == "" && n != c.after.Seqs[stranger] {
				t.Errorf("%s: a host that nobody knows is at %d", name, n)
			}
		}
	}
}

func TestNothingIsToldBeforeAHostOpenedTheStore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	s := New()
	configure(t, s, path)
	admit(t, s, "")
	commit(t, s, upsert(1, "a", `{}`))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("closed: %v", err)
	}
	again := openStore(t, path)
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("before Open: %v", err)
	}
	if err := again.Open(t.Context(), ports.Opening{HostID: host, Nonce: "not it", Next: "x"}); ports.CodeOf(err) != ports.Conflict {
		t.Fatal(err)
	}
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("after a refused Open: %v", err)
	}
	admit(t, again, "n")
	if page, err := again.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue}); err != nil || len(page.Rows) != 1 {
		t.Errorf("after Open: %+v, %v", page, err)
	}
	if _, err := again.Changes(t.Context(), ports.ChangesQuery{}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("of no family: %v", err)
	}
}

func TestAStoreThatHoldsNothingEndsAtOnce(t *testing.T) {
	t.Parallel()
	s := ready(t)
	page, err := s.Changes(t.Context(), ports.ChangesQuery{Family: ports.Manifest})
	if err != nil || len(page.Rows) != 0 || page.End == nil || page.End.Epoch != epoch || len(page.End.Seqs) != 0 || page.Dropped != nil {
		t.Errorf("%+v, %v", page, err)
	}
}

// A record stands where it was changed last, and nowhere else.
func TestARecordThatChangesDuringAWalkIsToldAgain(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"n":1}`), upsert(2, "b", `{"n":1}`), upsert(3, "c", `{"n":1}`))
	first := changesOrFail(t, s, ports.ChangesQuery{Family: ports.Queue, Limit: 1})
	commit(t, s, patch(4, "a", `{"n":2}`))
	rest, end := walkChanges(t, s, ports.ChangesQuery{Family: ports.Queue, After: first.Through, Limit: 1}, func() {})
	if keys := fmt.Sprint(keysOf(ports.Page{Rows: append(first.Rows, rest...)})); keys != "[a b c a]" || string(rest[2].Body) != `{"n":2}` || end.Seqs[host] != 4 {
		t.Errorf("told %s, then the end %v", keys, end)
	}
}

// Were a page read from more than one state of the file, it would pass over what came between them.
func TestAFollowerMissesNothingWhileTheStoreIsWritten(t *testing.T) {
	t.Parallel()
	s := ready(t)
	const writes = 600 / slowdown
	entryOf := func(n uint64) ports.Entry { // items and events in turn
		if n%2 == 0 {
			return event(n, "w", fmt.Sprint("g", n), `{}`)
		}
		return upsert(n, fmt.Sprint("k", n%7), fmt.Sprintf(`{"n":%d}`, n))
	}
	done := make(chan error, 1)
	go func() {
		var err error
		for n := uint64(1); n <= writes && err == nil; n++ {
			_, err = tryCommit(s, batchOf([]ports.Entry{entryOf(n)}))
		}
		done <- err
	}()
	copied := map[string]string{}
	q := ports.ChangesQuery{Family: ports.Queue}
	for q.After.Seqs[host] < writes {
		rows, end := walkChanges(t, s, q, func() {})
		for _, r := range rows {
			copied[r.Key+r.GUID] = string(r.Body)
		}
		q.After = end
		head := end.Seqs[host]
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

func TestAPageIsCutByBytesBetweenSeqs(t *testing.T) {
	t.Parallel()
	s := ready(t)
	body := func(mib int) string { return fmt.Sprintf(`{"Settings":%q}`, strings.Repeat("x", mib<<20)) }
	commit(t, s, upsert(1, "a", body(7)), upsert(2, "b", body(7)), upsert(3, "c", body(7)), upsert(4, "huge", body(20)))
	rows := []ports.Row{ // two records of one Seq, which no page may part
		{Kind: ports.KindItem, Key: "d", Body: []byte(body(9)), Change: ports.Change{Host: stranger, Seq: 1}},
		{Kind: ports.KindEvent, Key: "d", GUID: "g", Body: []byte(body(9)), Change: ports.Change{Host: stranger, Seq: 1}},
		{Kind: ports.KindItem, Key: "e", Body: []byte(`{}`), Change: ports.Change{Host: stranger, Seq: 2}},
	}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	var pages []string
	q := ports.ChangesQuery{Family: ports.Queue}
	for end := false; !end; {
		page := changesOrFail(t, s, q)
		pages = append(pages, strings.Join(keysOf(ports.Page{Rows: page.Rows}), ""))
		q.After, end = page.Through, page.End != nil
	}
	if got := strings.Join(pages, " "); got != "ab c huge dd e" {
		t.Errorf("pages are %s", got)
	}
}

func TestForgottenRemovalsAreTold(t *testing.T) {
	t.Parallel()
	s := ready(t)
	if err := s.work.do(t.Context(), false, func() error { s.work.graves = 2; return nil }); err != nil {
		t.Fatal(err)
	}
	var seq uint64
	remove := func(key string) {
		commit(t, s, entry(seq+1, ports.UpsertManifest, key, `{}`))
		commit(t, s, entry(seq+2, ports.RemoveManifest, key, ""))
		seq += 2
	}
	remove("a")
	remove("b")
	if page := changesOrFail(t, s, ports.ChangesQuery{Family: ports.Manifest}); page.Dropped != nil || len(page.Rows) != 2 {
		t.Errorf("within the limit: %+v", page)
	}
	remove("c")
	remove("d")
	gone := ports.Row{Kind: ports.KindManifest, Gone: true, Change: ports.Change{Host: stranger}}
	var rows []ports.Row
	for i, key := range []string{"p", "q", "r"} {
		gone.Key, gone.Change.Seq = key, uint64(i+5)
		rows = append(rows, gone)
	}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Manifest, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	page := changesOrFail(t, s, ports.ChangesQuery{Family: ports.Manifest})
	if len(page.Rows) != 2 || page.Dropped[host] != seq || page.Dropped[stranger] < 5 || len(page.Dropped) != 2 {
		t.Errorf("dropped %v, left %+v", page.Dropped, page.Rows)
	}
	if page := changesOrFail(t, s, ports.ChangesQuery{Family: ports.Queue}); page.Dropped != nil {
		t.Errorf("of the other family: %v", page.Dropped)
	}
}

func TestRowsOfAnotherProgramAreToldAsNobodys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	script(t, path,
		`CREATE TABLE UVQueueWorkItem (IDUVQueueWorkItem INTEGER PRIMARY KEY AUTOINCREMENT, WorkItemHash TEXT, Status TEXT, EnqueuedAt TEXT, CreateDate TEXT, Deleted INTEGER DEFAULT 0)`,
		`CREATE TABLE UVQueueWorkItemEvent (IDUVQueueWorkItemEvent INTEGER PRIMARY KEY AUTOINCREMENT, EventGUID TEXT, WorkItemHash TEXT, CreateDate TEXT, Deleted INTEGER DEFAULT 0)`,
		`INSERT INTO UVQueueWorkItem (WorkItemHash, Deleted) VALUES ('b', 0), ('a', 0), ('dead', 1)`,
		`INSERT INTO UVQueueWorkItemEvent (EventGUID, WorkItemHash) VALUES ('g2', 'a'), ('g1', 'b')`)
	s := openStore(t, path)
	admit(t, s, "")
	names := func(rows []ports.Row) (all []string) {
		for _, r := range rows {
			all = append(all, r.Key+r.GUID)
		}
		return all
	}
	rows, at := walkChanges(t, s, ports.ChangesQuery{Family: ports.Queue, Limit: 1}, func() {})
	if got := names(rows); !slices.Equal(got, []string{"b", "a", "ag2", "bg1"}) {
		t.Errorf("told %v", got)
	}
	// What is written later without any Change gets its place at the next start, behind everything that was told.
	commit(t, s, upsert(1, "a", `{"Status":"Running"}`))
	stray := ports.Row{Kind: ports.KindItem, Key: "stray", Body: []byte(`{}`)}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{stray}}); err != nil {
		t.Fatal(err)
	}
	script(t, path, `DELETE FROM UVQueueWorkItemEvent`)
	started(t, s, "n", "epoch-2", 2, nil)
	rows, _ = walkChanges(t, s, ports.ChangesQuery{Family: ports.Queue, After: at}, func() {})
	if got := names(rows); !slices.Equal(got, []string{"stray", "a"}) {
		t.Errorf("told later %v", got)
	}
}

func TestChangesAreReadAlongTheirIndexes(t *testing.T) {
	t.Parallel()
	s := ready(t)
	check := func(text, along string, sorts bool, args ...any) {
		t.Helper()
		for _, step := range plan(t, s, text, args...) {
			if strings.Contains(step, "UV") && !(strings.HasPrefix(step, "SEARCH") && strings.Contains(step, along)) {
				t.Errorf("%s\nis read by %s", text, step)
			}
			if strings.Contains(step, "TEMP B-TREE") && !sorts {
				t.Errorf("%s\nis sorted", text)
			}
		}
	}
	check(tombstones, "(Kind=? AND ChangeHost=? AND ChangeSeq>?)", false, "Manifest", host, 5)
	check(tombstonesOfKey, "(Kind=? AND Key=?)", false, "Manifest", "k", host, 5)
	for _, l := range layouts {
		check(l.since, "(ChangeHost=? AND ChangeSeq>?)", false, host, 5)
		check(l.sinceOfKey, "("+l.Table.Key+"=?)", true, "k", host, 5)
	}
	for _, f := range ports.Families {
		check(textsOf[f].hosts, "ChangeHost>?)", false)
		check(textsOf[f].highest, "ChangeHost=?)", false, host)
	}
}
