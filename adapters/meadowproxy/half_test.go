package meadowproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// alone is a backend over one databeacon, without a host.
type alone struct {
	*Backend
	t    *testing.T
	mesh *stock.Mesh
	db   *stock.Databeacon
}

func newAlone(t *testing.T) *alone {
	t.Helper()
	db, err := stock.Open(stock.Options{Name: "db", Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 {
		if _, err := db.AddConnection(fmt.Sprintf("store %d", i+1), "", i > 0); err != nil {
			t.Fatal(err)
		}
	}
	a := &alone{t: t, mesh: stock.NewMesh(), db: db}
	a.mesh.Connect(db)
	a.assign(1)
	a.Backend = New(func(ports.Configuration) (ports.Mesh, error) { return a.mesh, nil })
	if err := a.Configure(t.Context(), ports.Configuration{Name: "databeacon", DataDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = a.Close()
		a.mesh.Close()
		_ = db.Close()
	})
	return a
}

func (a *alone) assign(connection int64) {
	for _, f := range ports.Families {
		a.mesh.Assign(f, "db", connection)
	}
}

func (a *alone) within() context.Context {
	ctx, cancel := context.WithTimeout(a.t.Context(), 20*time.Second)
	a.t.Cleanup(cancel)
	return ctx
}

func (a *alone) position() ports.Position {
	a.t.Helper()
	p, err := a.Position(a.within(), ports.Queue)
	if err != nil {
		a.t.Fatal(err)
	}
	return p
}

// item is a work item that somebody wrote as the n-th thing.
func item(key string, n uint64) ports.Row {
	return ports.Row{Kind: ports.KindItem, Key: key, Body: []byte(`{"WorkItemHash":"` + key + `","Status":"Running"}`), Change: ports.Change{Host: "host", Seq: n}}
}

// puts puts an item after a position, and moves it.
func (a *alone) puts(key string, after *ports.Position, to uint64) error {
	p := ports.Position{Epoch: "epoch", Seqs: map[string]uint64{"host": to}}
	if after != nil {
		p.StoreID = after.StoreID
	}
	_, err := a.Put(a.within(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item(key, to)}, After: after, Position: &p})
	return err
}

func (a *alone) mustPut(key string, after *ports.Position, to uint64) {
	a.t.Helper()
	if err := a.puts(key, after, to); err != nil {
		a.t.Fatal(err)
	}
}

// reads waits until a read is answered or refused for good, and gives how.
func (a *alone) reads(key string) error {
	a.t.Helper()
	ctx := a.within()
	_, err := a.Item(ctx, key)
	return err
}

// reconnect has the databeacon connect anew, and waits until the backend is bound to the new session.
func (a *alone) reconnect() {
	a.t.Helper()
	h, err := a.half(ports.Queue)
	if err != nil {
		a.t.Fatal(err)
	}
	was := h.bound
	a.mesh.Disconnect("db")
	a.mesh.Connect(a.db)
	a.eventually("bound to the new session", func() bool {
		at, err := h.ready(a.within())
		return err == nil && at.bound != was
	})
}

func (a *alone) eventually(what string, is func() bool) {
	a.t.Helper()
	ctx := a.within()
	for !is() {
		if pause(ctx, 5*time.Millisecond); ctx.Err() != nil {
			a.t.Fatalf("%s: never", what)
		}
	}
}

func TestAnotherDatabaseShowsNothingBeforeTheHostKnowsIt(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	first := a.position()
	a.mustPut("kept", &first, 5)
	if err := a.reads("kept"); err != nil {
		t.Fatal(err)
	}
	a.assign(2)
	a.eventually("the other one is bound", func() bool {
		err := a.reads("kept")
		if err == nil || ports.CodeOf(err) == ports.NotFound {
			t.Fatalf("a read was answered: %v", err)
		}
		h, _ := a.half(ports.Queue)
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.bound.connection == 2
	})
	was := first
	was.Seqs = map[string]uint64{"host": 5}
	if err := a.puts("late", &was, 6); ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
		t.Errorf("a batch for the first database: %v", err)
	}
	if err := a.Probe(a.within(), ports.Queue); ports.CodeOf(err) != ports.Unavailable || ports.AsError(err).Field != ports.FieldBootstrap {
		t.Errorf("the first probe: %v", err)
	}
	if err := a.Probe(a.within(), ports.Queue); err != nil {
		t.Errorf("the second probe: %v", err)
	}
	if err := a.reads("kept"); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a read before the host asked: %v", err)
	}
	second := a.position()
	if second.StoreID == first.StoreID {
		t.Error("it is the same store")
	}
	if err := a.reads("kept"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("a read after the host asked: %v", err)
	}
	a.mustPut("late", &second, 1)
}

func TestARowThatWasPutBeforeAReconnectIsNotTakenForThere(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	at := a.position()
	if _, err := a.Put(a.within(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("in between", 3)}, After: &at}); err != nil {
		t.Fatal(err)
	}
	a.reconnect() // an older copy could come back now, with the same position
	p := ports.Position{StoreID: at.StoreID, Seqs: map[string]uint64{"host": 3}}
	_, err := a.Put(a.within(), ports.Batch{Family: ports.Queue, After: &at, Position: &p})
	if ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
		t.Errorf("the position moved over it: %v", err)
	}
	if is := a.position(); !same(is, at) {
		t.Errorf("the store is at %v", is)
	}
	a.mustPut("in between", &at, 3)
}

func TestAReconnectThatChangesNothingInterruptsNothing(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	at := a.position()
	a.mustPut("one", &at, 1)
	for n := uint64(2); n < 5; n++ {
		a.reconnect()
		after := ports.Position{StoreID: at.StoreID, Seqs: map[string]uint64{"host": n - 1}}
		if err := a.Probe(a.within(), ports.Queue); err != nil {
			t.Errorf("a probe: %v", err)
		}
		if err := a.reads("one"); err != nil {
			t.Errorf("a read: %v", err)
		}
		a.mustPut(fmt.Sprint("more ", n), &after, n)
	}
}

func TestAProbeSeesWhatKeepsADatabaseFromBeingWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(a *alone)
		field string
		mends bool // by itself
	}{
		"the endpoints are lost": {func(a *alone) { a.db.Restart() }, ports.FieldBootstrap, false},
		"the table is gone": {func(a *alone) {
			execute(a.t, a.db.Database(1), `DROP TABLE UVQueueWorkItem`)
		}, ports.FieldBootstrap, true},
		"it was emptied": {func(a *alone) {
			for _, table := range tables(a.t, a.db.Database(1)) {
				execute(a.t, a.db.Database(1), fmt.Sprintf(`DELETE FROM %q`, table))
			}
		}, ports.FieldBootstrap, true},
		"writes are forbidden": {func(a *alone) {
			a.db.Fault(func(_, _ string, settings json.RawMessage) (string, bool) {
				var s struct{ Method string }
				return "MeadowProxy: writes are disabled.", json.Unmarshal(settings, &s) == nil && s.Method == http.MethodPut
			})
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAlone(t)
			at := a.position()
			a.mustPut("one", &at, 1)
			if err := a.Probe(a.within(), ports.Queue); err != nil {
				t.Fatal(err)
			}
			c.spoil(a)
			if err := a.Probe(a.within(), ports.Queue); ports.CodeOf(err) != ports.Unavailable || ports.AsError(err).Field != c.field {
				t.Errorf("%v", err)
			}
			if c.mends {
				a.eventually("a probe that is good", func() bool { return a.Probe(a.within(), ports.Queue) == nil })
			}
		})
	}
}

func TestAPutThatEndsDuringAProbeIsNoOtherDatabase(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	at := a.position()
	a.mustPut("one", &at, 1)
	h, err := a.half(ports.Queue)
	if err != nil {
		t.Fatal(err)
	}
	for n := uint64(2); n < 4; n++ {
		after := ports.Position{StoreID: at.StoreID, Seqs: map[string]uint64{"host": n - 1}}
		hold, asked := make(chan struct{}), make(chan struct{}, 100)
		a.db.Fault(func(_, _ string, settings json.RawMessage) (string, bool) {
			if bytes.Contains(settings, []byte(ownTable)) && !bytes.Contains(settings, []byte(http.MethodGet)) { // the last thing that the Put does
				asked <- struct{}{}
				<-hold
			}
			return "", false
		})
		put := make(chan error, 1)
		go func() { put <- a.puts(fmt.Sprint("more ", n), &after, n) }()
		<-asked
		was, puts, quiet := h.glance() // as a probe does which is answered only when the Put has ended
		close(hold)
		if err := <-put; err != nil {
			t.Fatal(err)
		}
		if quiet {
			t.Errorf("it is quiet at %v after %d puts, in the middle of one", was, puts)
		}
		if err := a.Probe(a.within(), ports.Queue); err != nil {
			t.Errorf("a probe after it: %v", err)
		}
		a.db.Fault(nil)
	}
}

func TestABusyDatabeaconIsNotAwayAtOnce(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	a.position()
	release := make(chan struct{})
	a.db.Fault(func(string, string, json.RawMessage) (string, bool) {
		<-release
		return "", false
	})
	for n, want := range []ports.Code{ports.Deadline, ports.Deadline, ports.Unavailable, ports.Unavailable} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := a.Probe(ctx, ports.Queue); ports.CodeOf(err) != want {
			t.Errorf("probe %d: %v", n+1, err)
		}
		cancel()
	}
	close(release)
	a.eventually("a probe that is good", func() bool { return a.Probe(a.within(), ports.Queue) == nil })
}

func TestAHostWithAnotherHistoryTakesTheStoreOverAndIsNotMixed(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	at := a.position()
	a.mustPut("one", &at, 10)
	other := New(func(ports.Configuration) (ports.Mesh, error) { return a.mesh, nil })
	if err := other.Configure(t.Context(), ports.Configuration{Name: "databeacon", DataDir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	theirs, err := other.Position(a.within(), ports.Queue)
	if err != nil || theirs.StoreID != at.StoreID || theirs.Seqs["host"] != 10 {
		t.Fatalf("%v, %v", theirs, err)
	}
	p := ports.Position{StoreID: at.StoreID, Epoch: "theirs", Seqs: map[string]uint64{"their host": 1}}
	if _, err := other.Put(a.within(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("theirs", 1)}, After: &theirs, Position: &p}); err != nil {
		t.Fatal(err)
	}
	after := ports.Position{StoreID: at.StoreID, Seqs: map[string]uint64{"host": 10}}
	if err := a.puts("two", &after, 11); ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
		t.Errorf("a batch after the other host's: %v", err)
	}
	if is := a.position(); len(is.Seqs) != 1 || is.Seqs["their host"] != 1 {
		t.Errorf("the store is at %v", is)
	}
}

func TestAPositionThatWasCopiedFromAnotherStoreIsNone(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	at := a.position()
	a.mustPut("one", &at, 10)
	execute(t, a.db.Database(1), `UPDATE UVHoldfast SET Value = 'somebody else' WHERE Name = 'StoreID'`)
	a.eventually("the store is another one", func() bool {
		p, err := a.Position(a.within(), ports.Queue)
		return err == nil && p.StoreID == "somebody else" && len(p.Seqs) == 0
	})
}
