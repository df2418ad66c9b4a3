package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestABatchThatComesAgainGetsItsFirstAnswers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	s := New()
	configure(t, s, path)
	admit(t, s, "")
	given := event(4, "a", "g", `{"WorkItemHash":"a","EventType":"y"}`)
	given.GUIDGiven = true
	b := batchOf([]ports.Entry{
		upsert(1, "a", `{"WorkItemHash":"a"}`), patch(2, "nobody", `{"Status":"Running"}`), event(3, "a", "g", `{"WorkItemHash":"a","EventType":"x"}`), given,
	})
	first, err := tryCommit(s, b)
	if err != nil {
		t.Fatal(err)
	}
	want := "[1stored<nil> 2missing<nil> 3stored<nil> 4refusedEventGUID: is stored already with other content; give a new event a GUID of its own]"
	if got := fmt.Sprint(tabletest.Plain(first)); got != want {
		t.Fatalf("decided %s\nwant    %s", got, want)
	}
	commit(t, s, upsert(5, "b", `{"WorkItemHash":"b"}`))
	check := func(when string, s *Store) {
		t.Helper()
		for name, b := range map[string]ports.CommitBatch{"whole": b, "a part, cut otherwise": {
			Family: b.Family, Epoch: epoch, After: 1, Through: 5, Entries: append(b.Entries[1:4:4], upsert(5, "b", `{"WorkItemHash":"b"}`)),
		}} {
			again, err := tryCommit(s, b)
			if err != nil {
				t.Fatalf("%s, %s: %v", when, name, err)
			}
			for _, d := range again {
				if want := append(first, ports.Decision{Seq: 5, Outcome: ports.Stored})[d.Seq-1]; fmt.Sprint(tabletest.Plain([]ports.Decision{d})) != fmt.Sprint(tabletest.Plain([]ports.Decision{want})) {
					t.Errorf("%s, %s: %v, want %v", when, name, d, want)
				}
			}
		}
	}
	check("at once", s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	again := openStore(t, path)
	admit(t, again, "n")
	check("after a restart", again)
	if p, err := again.Position(t.Context(), ports.Queue); err != nil || p.Seqs[host] != 5 || p.Epoch != epoch {
		t.Errorf("position %+v, %v", p, err)
	}
}

func TestABatchThatDoesNotFitChangesNothing(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a"}`), upsert(2, "b", `{"WorkItemHash":"b"}`))
	next := []ports.Entry{upsert(3, "c", `{"WorkItemHash":"c"}`)}
	for name, c := range map[string]struct {
		batch ports.CommitBatch
		code  ports.Code
	}{
		"a gap":                {ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: 4, Through: 5, Entries: []ports.Entry{upsert(5, "c", `{}`)}}, ports.Conflict},
		"an overlap":           {ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: 1, Through: 3, Entries: next}, ports.Conflict},
		"an unknown epoch":     {ports.CommitBatch{Family: ports.Queue, Epoch: "other", After: 2, Through: 3, Entries: next}, ports.Conflict},
		"out of order":         {ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: 2, Through: 4, Entries: append(next, next...)}, ports.Invalid},
		"beyond its end":       {ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: 2, Through: 2, Entries: next}, ports.Invalid},
		"of the other family":  {ports.CommitBatch{Family: ports.Manifest, Epoch: epoch, After: 2, Through: 3, Entries: next}, ports.Invalid},
		"of no family we know": {ports.CommitBatch{Family: "Tape", Epoch: epoch, After: 2, Through: 3, Entries: next}, ports.Invalid},
	} {
		if _, err := tryCommit(s, c.batch); ports.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want %s", name, err, c.code)
		}
	}
	if _, err := s.Item(t.Context(), "c"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("c: %v", err)
	}
	commit(t, s, next...)
}

// A stretch whose entries were all set aside still moves the mark.
func TestAnEmptyBatchMovesTheMark(t *testing.T) {
	t.Parallel()
	s := ready(t)
	if d, err := tryCommit(s, ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: 0, Through: 7}); err != nil || len(d) != 0 {
		t.Fatalf("%v, %v", d, err)
	}
	standing, err := s.Stand(t.Context(), host)
	if err != nil || standing.Marks[ports.Queue] != (ports.Mark{Epoch: epoch, Seq: 7}) || !standing.Empty {
		t.Errorf("%+v, %v", standing, err)
	}
}

func TestOnlyTheGuiltyBatchOfATransactionFails(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a"}`))
	// A row that the engine refuses: the table has a rule of its own.
	if err := s.work.do(t.Context(), false, func() error {
		return s.work.link.once(`CREATE TRIGGER guard BEFORE INSERT ON UVQueueWorkItem WHEN NEW.WorkItemHash = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END`)
	}); err != nil {
		t.Fatal(err)
	}
	release := hold(t, s)
	var pending []ports.Pending
	send := func(b ports.CommitBatch) {
		p, err := s.Commit(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, p)
	}
	send(batchOf([]ports.Entry{upsert(2, "b", `{"WorkItemHash":"b"}`)}))
	send(batchOf([]ports.Entry{upsert(3, "bad", `{"WorkItemHash":"bad"}`), upsert(4, "c", `{"WorkItemHash":"c"}`)}))
	send(batchOf([]ports.Entry{entry(1, ports.UpsertManifest, "m", `{"Hash":"m"}`)}))
	send(batchOf([]ports.Entry{upsert(5, "d", `{"WorkItemHash":"d"}`)}))
	release()
	for i, want := range []ports.Code{"", ports.Invalid, "", ports.Conflict} {
		if _, err := pending[i].Wait(t.Context()); ports.CodeOf(err) != want {
			t.Errorf("batch %d: %v, want %q", i, err, want)
		}
	}
	for key, there := range map[string]bool{"a": true, "b": true, "bad": false, "c": false, "d": false} {
		if _, err := s.Item(t.Context(), key); (err == nil) != there {
			t.Errorf("item %s: %v", key, err)
		}
	}
}

// hold keeps the writer busy until release is called, so that what is submitted meanwhile goes together.
func hold(t *testing.T, s *Store) (release func()) {
	t.Helper()
	busy, free := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.work.do(context.Background(), false, func() error { close(busy); <-free; return nil })
	}()
	<-busy
	return func() { close(free) }
}

func TestANonceIsReplacedOnceAndACopyIsRefused(t *testing.T) {
	t.Parallel()
	s := ready(t)
	other := ports.Opening{HostID: host, Nonce: "", Next: "x"}
	if err := s.Open(t.Context(), other); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("an old nonce: %v, want conflict", err)
	}
	if d := commit(t, s, upsert(1, "a", `{"WorkItemHash":"a"}`)); d[0].Outcome != ports.Stored {
		t.Errorf("after the refusal: %v", d)
	}
	if err := s.Open(t.Context(), ports.Opening{HostID: "another", Nonce: "", Next: "x", Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: "e", From: 1}}}); err != nil {
		t.Fatalf("a second host: %v", err)
	}
	p, err := s.Commit(t.Context(), ports.CommitBatch{Family: ports.Queue, Epoch: "e", After: 0, Through: 9, Entries: []ports.Entry{patch(9, "a", `{"Status":"Running"}`)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	position, err := s.Position(t.Context(), ports.Queue)
	if err != nil || position.Seqs[host] != 1 || position.Seqs["another"] != 9 {
		t.Errorf("position %+v, %v", position, err)
	}
	row, err := s.Item(t.Context(), "a")
	if err != nil || row.Change != (ports.Change{Host: "another", Seq: 9}) {
		t.Errorf("changed by %+v, %v", row.Change, err)
	}
}

func TestEpochsAreKeptToTheNewestThousandAndResumeMovesTheMark(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, patch(1, "nobody", `{"Status":"x"}`))
	nonce := "n"
	for i := range tables.MaxEpochs {
		next := fmt.Sprint("n", i)
		o := ports.Opening{HostID: host, Nonce: nonce, Next: next, Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: fmt.Sprint("e", i), From: uint64(i + 2)}}}
		if i == tables.MaxEpochs-1 {
			o.Resume = map[ports.Family]uint64{ports.Queue: 41}
		}
		if err := s.Open(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		nonce = next
	}
	var kept []ports.Epoch
	if _, err := s.file.keyJSON(t.Context(), tables.KeyEpochs(ports.Queue, host), &kept); err != nil || len(kept) != tables.MaxEpochs || kept[0].ID != "e0" {
		t.Errorf("%d epochs are kept, %v", len(kept), err)
	}
	b := ports.CommitBatch{Family: ports.Queue, After: 41, Through: 42, Entries: []ports.Entry{upsert(42, "a", `{"WorkItemHash":"a"}`)}}
	for _, older := range []string{epoch, "e0"} {
		b.Epoch = older
		if _, err := tryCommit(s, b); ports.CodeOf(err) != ports.Conflict || !strings.Contains(err.Error(), older) {
			t.Errorf("epoch %s: %v, want conflict", older, err)
		}
	}
	b.Epoch = fmt.Sprint("e", tables.MaxEpochs-1)
	if _, err := tryCommit(s, b); err != nil {
		t.Errorf("the newest epoch: %v", err)
	}
	b.After, b.Through, b.Entries = 0, 1, []ports.Entry{patch(1, "nobody", `{"Status":"x"}`)}
	if d, err := tryCommit(s, b); err != nil || d[0].Outcome != ports.Stored {
		t.Errorf("an answer of another history was kept: %v, %v", d, err)
	}
}

func TestCommitWaitsForAHost(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	if _, err := tryCommit(s, batchOf([]ports.Entry{upsert(1, "a", `{"WorkItemHash":"a"}`)})); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

func TestTombstonesAreBoundedAndTheOldestGo(t *testing.T) {
	t.Parallel()
	s := ready(t)
	s.work.graves = 3
	var entries []ports.Entry
	for i := range 5 {
		key := fmt.Sprint("m", i)
		entries = append(entries, entry(uint64(2*i+1), ports.UpsertManifest, key, fmt.Sprintf(`{"Hash":%q}`, key)), entry(uint64(2*i+2), ports.RemoveManifest, key, ""))
	}
	for _, e := range entries {
		commit(t, s, e)
	}
	for i := range 5 {
		seq, key := uint64(11+i), fmt.Sprint("m", i)
		e := entry(seq, ports.UpsertManifest, key, fmt.Sprintf(`{"Hash":%q}`, key))
		e.Class = ports.Reflush
		want := ports.Expired
		if i < 2 {
			want = ports.Stored
		}
		if d := commit(t, s, e); d[0].Outcome != want {
			t.Errorf("%s is %s, want %s", key, d[0].Outcome, want)
		}
	}
}
