package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/ports"
)

// copyAll exports a family and puts it into another store.
func copyAll(t *testing.T, from, to *Store, f ports.Family, limit int, position *ports.Position) (rows []ports.Row) {
	t.Helper()
	var after *ports.Cursor
	for {
		page, err := from.Export(t.Context(), ports.ExportQuery{Family: f, After: after, Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, page.Rows...)
		b := ports.Batch{Family: f, Rows: page.Rows}
		if page.Next == nil {
			b.Position = position
		}
		if to != nil {
			if got, err := to.Put(t.Context(), b); err != nil || got.Done != len(page.Rows) {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		if page.Next == nil {
			return rows
		}
		if after, err = ports.ParseCursor(page.Next.Token()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACopyIsTheSameWhateverThePageAndARepeatChangesNothing(t *testing.T) {
	t.Parallel()
	from := ready(t)
	seq := uint64(0)
	next := func() uint64 { seq++; return seq }
	for name, text := range nastyItems {
		commit(t, from, upsert(next(), name, text), event(next(), name, "1-"+name, text), event(next(), name, "0-"+name, `{"EmittedAt":"2026-01-01T00:00:00Z"}`),
			attempt(next(), ports.InsertAttempt, name, 2, text), attempt(next(), ports.InsertAttempt, name, 10, `{}`), event(next(), name+" without item", "2-"+name, `{}`))
	}
	commit(t, from, entry(1, ports.UpsertManifest, "m", "{\"Hash\":\"m\",\n \"Status\":5}"), entry(2, ports.UpsertManifest, "n", `{"Hash":"n"}`))
	position := &ports.Position{Epoch: epoch, Seqs: map[string]uint64{host: seq}}
	for _, limit := range []int{1, 2, 7, 5000} {
		path := filepath.Join(t.TempDir(), "copy.db")
		to := openStore(t, path)
		for _, f := range ports.Families {
			rows := copyAll(t, from, to, f, limit, position)
			if !slices.IsSortedFunc(rows, exportOrder) {
				t.Errorf("by %d: the export is not in the order of keys", limit)
			}
			want := fmt.Sprint(rows)
			if got := fmt.Sprint(copyAll(t, to, nil, f, 1000, nil)); got != want {
				t.Fatalf("by %d: the copy differs\ngot  %.2000s\nwant %.2000s", limit, got, want)
			}
			stamp := stampOf(t, to)
			copyAll(t, from, to, f, limit, position)
			if again := stampOf(t, to); again != stamp {
				t.Errorf("by %d: putting again wrote rows: %s, then %s", limit, stamp, again)
			}
		}
		p, err := to.Position(t.Context(), ports.Queue)
		if err != nil || p.Epoch != epoch || p.Seqs[host] != seq || p.StoreID == "" || p.StoreID == from.file.storeID {
			t.Errorf("position %+v, %v", p, err)
		}
	}
}

func exportOrder(a, b ports.Row) int {
	rank := func(r ports.Row) string {
		return r.Key + "\x00" + fmt.Sprint(slices.Index(ports.Kinds, r.Kind)) + map[bool]string{true: r.First.OrderKey}[r.Kind == ports.KindEvent] + fmt.Sprintf("%04d", r.Number)
	}
	switch x, y := rank(a), rank(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// stampOf tells of every write to a table that has an UpdateDate, and of every identity given.
func stampOf(t *testing.T, s *Store) string {
	t.Helper()
	var stamp string
	err := s.file.readers.QueryRowContext(context.Background(), `SELECT (SELECT group_concat(seq) FROM sqlite_sequence) || (SELECT coalesce(group_concat(UpdateDate), '') FROM UVQueueWorkItem)`).Scan(&stamp)
	if err != nil {
		t.Fatal(err)
	}
	return stamp
}

func TestPutReplacesWholeAndRemoves(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	put := func(rows ...ports.Row) (ports.Applied, error) {
		return s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: rows})
	}
	row := ports.Row{Kind: ports.KindItem, Key: "a", Body: []byte(`{"WorkItemHash":"a","Status":"Pending","X":1}`), First: ports.First{OrderKey: "o1", Actor: "x"}, Change: ports.Change{Host: "h", Seq: 3}}
	if _, err := put(row); err != nil {
		t.Fatal(err)
	}
	row.Body, row.First.OrderKey, row.Change.Seq = []byte(`{"WorkItemHash":"a","Priority":1}`), "o2", 4
	if _, err := put(row); err != nil {
		t.Fatal(err)
	}
	got, err := s.Item(t.Context(), "a")
	if err != nil || string(got.Body) != string(row.Body) || got.First != row.First || got.Change != row.Change {
		t.Errorf("%+v, %v", got, err)
	}
	bad := ports.Row{Kind: ports.KindItem, Key: "b", Body: []byte(`{"a":1,"a":2}`)}
	applied, err := put(ports.Row{Kind: ports.KindEvent, Key: "a", GUID: "g", Body: []byte(`{}`)}, bad, ports.Row{Kind: ports.KindItem, Key: "c", Body: []byte(`{}`)})
	if applied.Done != 1 || ports.CodeOf(err) != ports.Invalid {
		t.Errorf("%+v, %v; want 1 and invalid", applied, err)
	}
	if page, err := s.Events(t.Context(), ports.EventQuery{Key: "a"}); err != nil || len(page.Rows) != 1 {
		t.Errorf("what stood before the refused row: %+v, %v", page, err)
	}
	gone := ports.Row{Kind: ports.KindItem, Key: "a", Gone: true, Change: ports.Change{Host: "h", Seq: 5}}
	for range 2 {
		if applied, err := put(gone, ports.Row{Kind: ports.KindEvent, Key: "a", GUID: "g", Gone: true}); err != nil || applied.Done != 2 {
			t.Errorf("%+v, %v", applied, err)
		}
	}
	if _, err := s.Item(t.Context(), "a"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("a: %v", err)
	}
	survey, err := s.Survey(t.Context())
	if err != nil || survey.Counts[ports.KindItem] != 0 || survey.Counts[ports.KindEvent] != 0 || survey.Bytes == 0 {
		t.Errorf("%+v, %v", survey, err)
	}
}

func TestPutReplacesAnOlderAndANewerStateAlike(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	at := func(seq uint64, r ports.Row) ports.Row {
		r.Body = fmt.Appendf(nil, `%s"n":%d}`, r.Body, seq)
		r.First = ports.First{ReceivedAt: fmt.Sprint("received", seq), OrderKey: fmt.Sprint("order", seq), Actor: fmt.Sprint("actor", seq), Origin: "http"}
		switch r.Kind {
		case ports.KindItem:
			r.First.EnqueuedKey = fmt.Sprint("enqueued", seq)
		case ports.KindEvent:
			r.First.EmittedAt = fmt.Sprint("emitted", seq)
		}
		r.Change = ports.Change{Host: fmt.Sprint("host", seq%2), Seq: seq}
		return r
	}
	read := func(r ports.Row) (ports.Row, error) {
		switch r.Kind {
		case ports.KindItem:
			return s.Item(t.Context(), r.Key)
		case ports.KindManifest:
			return s.Manifest(t.Context(), r.Key)
		}
		var page ports.Page
		var err error
		if r.Kind == ports.KindEvent {
			page, err = s.Events(t.Context(), ports.EventQuery{Key: r.Key, Bodies: true})
		} else {
			page, err = s.Attempts(t.Context(), ports.AttemptQuery{Key: r.Key})
		}
		if err != nil || len(page.Rows) != 1 {
			return ports.Row{}, fmt.Errorf("%d rows, %w", len(page.Rows), err)
		}
		return page.Rows[0], nil
	}
	for _, r := range []ports.Row{
		{Kind: ports.KindItem, Key: "w", Body: []byte(`{"WorkItemHash":"w","Status":"Running",`)},
		{Kind: ports.KindEvent, Key: "w", GUID: "g", Body: []byte(`{"EventGUID":"g","WorkItemHash":"w",`)},
		{Kind: ports.KindAttempt, Key: "w", Number: 2, Body: []byte(`{"WorkItemHash":"w","AttemptNumber":2,`)},
		{Kind: ports.KindManifest, Key: "m", Body: []byte(`{"Hash":"m",`)},
	} {
		for _, seq := range []uint64{5, 3, 9, 9, 1} {
			want := at(seq, r)
			if _, err := s.Put(t.Context(), ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{want}}); err != nil {
				t.Fatal(err)
			}
			if got, err := read(r); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s of Seq %d, %v\ngot  %+v\nwant %+v", r.Kind, seq, err, got, want)
			}
		}
	}
}

func TestARowsNameIsThatOfItsRecord(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	put := func(r ports.Row) error {
		_, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{r}})
		return err
	}
	for range 2 {
		for _, n := range []int64{2, 3} {
			if err := put(ports.Row{Kind: ports.KindAttempt, Key: "w", Number: n, Body: []byte(`{"Outcome":"Complete"}`)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if page, err := s.Attempts(t.Context(), ports.AttemptQuery{Key: "w"}); err != nil || len(page.Rows) != 2 || page.Rows[1].Number != 3 {
		t.Errorf("%+v, %v", page.Rows, err)
	}
	for _, r := range []ports.Row{
		{Kind: ports.KindAttempt, Key: "w", Number: 2, Body: []byte(`{"AttemptNumber":3}`)},
		{Kind: ports.KindEvent, Key: "w", GUID: "g", Body: []byte(`{"EventGUID":"h"}`)},
	} {
		if err := put(r); ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%s named otherwise: %v", r.Kind, err)
		}
	}
}

func TestPutLeavesTheMarksOfALocalStore(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{}`), upsert(2, "b", `{}`))
	row := ports.Row{Kind: ports.KindItem, Key: "c", Body: []byte(`{}`), Change: ports.Change{Host: "h", Seq: 9}}
	position := &ports.Position{Epoch: "x", Seqs: map[string]uint64{host: 77, "h": 9}}
	if _, err := s.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}, Position: position}); err != nil {
		t.Fatal(err)
	}
	p, err := s.Position(t.Context(), ports.Queue)
	if err != nil || p.Epoch != epoch || len(p.Seqs) != 1 || p.Seqs[host] != 2 {
		t.Errorf("position %+v, %v", p, err)
	}
	standing, err := s.Stand(t.Context(), host)
	if err != nil || standing.Marks[ports.Queue] != (ports.Mark{Epoch: epoch, Seq: 2}) {
		t.Errorf("standing %+v, %v", standing, err)
	}
	commit(t, s, upsert(3, "d", `{}`))
}

func TestADrainedStoreAnswersReadsAndTakesNoWork(t *testing.T) {
	t.Parallel()
	s := ready(t)
	release := hold(t, s)
	p, err := s.Commit(t.Context(), batchOf([]ports.Entry{upsert(1, "a", `{"WorkItemHash":"a"}`)}))
	if err != nil {
		t.Fatal(err)
	}
	drained := make(chan error)
	go func() { drained <- s.Drain(context.Background()) }()
	release()
	if err := <-drained; err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Errorf("what was in line: %v", err)
	}
	if n := s.file.walSize(); n != 0 {
		t.Errorf("the log has %d bytes", n)
	}
	if _, err := s.Item(t.Context(), "a"); err != nil {
		t.Error(err)
	}
	_, err = s.Commit(t.Context(), batchOf([]ports.Entry{upsert(2, "b", `{}`)}))
	_, putErr := s.Put(t.Context(), ports.Batch{})
	_, pruneErr := s.Prune(t.Context(), ports.PruneQuery{})
	for _, err := range []error{err, putErr, pruneErr, s.Probe(t.Context(), ports.Queue), s.Open(t.Context(), ports.Opening{HostID: "h", Next: "n"})} {
		if ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("got %v, want unavailable", err)
		}
	}
	if err := s.Drain(t.Context()); err != nil && ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("drained again: %v", err)
	}
}

func TestACloseAnswersWhoWaits(t *testing.T) {
	t.Parallel()
	s := ready(t)
	release := hold(t, s)
	p, err := s.Commit(t.Context(), batchOf([]ports.Entry{upsert(1, "a", `{"WorkItemHash":"a"}`)}))
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	if _, err := p.Wait(t.Context()); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
	release()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := s.Item(t.Context(), "a"); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a read afterwards: %v", err)
	}
}
