package beacon

import (
	"context"
	"fmt"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// at asks where a family is, until the backend has seen what the village did.
func at(t *testing.T, b *Backend, f ports.Family) ports.Position {
	t.Helper()
	p, err := b.Position(within(t), f)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// moved puts rows and moves the position.
func moved(t *testing.T, b *Backend, f ports.Family, seq uint64, rows ...ports.Row) ports.Position {
	t.Helper()
	before := at(t, b, f)
	p := ports.Position{StoreID: before.StoreID, Epoch: "e", Seqs: map[string]uint64{"h": seq}}
	applied, err := b.Put(within(t), ports.Batch{Family: f, Rows: rows, After: &before, Position: &p})
	if err != nil || applied.Done != len(rows) {
		t.Fatalf("put: Done %d, %v", applied.Done, err)
	}
	return p
}

// seen waits until a backend knows of the newest state of the village.
func seen(t *testing.T, b *Backend, v *village) {
	t.Helper()
	ctx := within(t)
	for {
		h := b.halves[ports.Queue]
		h.fleet.mu.Lock()
		known := h.fleet.known.Version
		h.fleet.mu.Unlock()
		v.mu.Lock()
		now := v.version
		v.mu.Unlock()
		if known == now {
			return
		}
		pause(ctx, time.Millisecond)
		if ctx.Err() != nil {
			t.Fatal("the backend does not see what the village did")
		}
	}
}

func same(a, b ports.Position) bool {
	return a.StoreID == b.StoreID && a.Epoch == b.Epoch && maps.Equal(a.Seqs, b.Seqs)
}

func TestABeaconThatConnectsAnewIsComparedWithWhatItHad(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		meanwhile func(p *stock.Persistence)
		is        bool
	}{
		"it is as it was":           {func(*stock.Persistence) {}, true},
		"it has something more":     {func(p *stock.Persistence) { lay(p, `{"WorkItemHash":"k40","HealthLabel":"Healthy"}`) }, true},
		"it is empty":               {func(p *stock.Persistence) { p.Wipe() }, false},
		"it has one older state":    {func(p *stock.Persistence) { lay(p, `{"WorkItemHash":"k40","Status":"Pending","HoldfastRow":null}`) }, false},
		"it has a newer state":      {func(p *stock.Persistence) { lay(p, newer) }, true},
		"an older key is different": {func(p *stock.Persistence) { lay(p, `{"WorkItemHash":"k1","Status":"Pending"}`) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			var rows []ports.Row
			for i := 1; i <= 40; i++ {
				key := fmt.Sprint("k", i)
				rows = append(rows, item(key, uint64(i), `,"Status":"Running","Settings":{"a":1.0}`), event(key, "e"+key, `,"EventType":"enqueued"`))
			}
			moved(t, b, ports.Queue, 8, rows[:16]...) // keys side by side end in any order
			before := moved(t, b, ports.Queue, 40, rows[16:]...)
			moved(t, b, ports.Manifest, 7, manifest("r", `,"Status":"Complete"`))
			if n := len(b.halves[ports.Queue].page.Recent); n != recentKeys {
				t.Fatalf("%d keys are remembered, want %d", n, recentKeys)
			}
			v.offline("archive")
			c.meanwhile(p)
			v.join("archive", p)
			seen(t, b, v)
			after := at(t, b, ports.Queue)
			switch {
			case c.is && !same(after, before):
				t.Errorf("the store was at %v, and is another one at %v", before, after)
			case !c.is && (after.StoreID == before.StoreID || after.StoreID == "" || !isZero(after)):
				t.Errorf("the store was at %v, and is at %v; want a new generation at zero", before, after)
			}
			if _, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: rows[:2], After: &before}); c.is != (err == nil) {
				t.Errorf("a batch of the generation before: %v", err)
			} else if !c.is && (ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition) {
				t.Errorf("a batch of the generation before: %v; want a conflict in the field Position", err)
			}
		})
	}
}

const newer = `{"WorkItemHash":"k40","Status":"Complete","HoldfastRow":{"Sum":"x","Has":"1","ChangeHost":"h","ChangeSeq":41}}`

// lay lays members over an item, as a stock store does.
func lay(p *stock.Persistence, members string) {
	for _, a := range p.Actions() {
		if a.Name == "QP_UpsertWorkItem" {
			_, _ = a.Do(context.Background(), &stock.Work{Item: stock.Item{Settings: []byte(`{"WorkItem":` + members + `}`)}})
		}
	}
}

func TestEachFamilyIsComparedForItself(t *testing.T) {
	t.Parallel()
	v, queue, manifests := newVillage(), stock.NewPersistence(), stock.NewPersistence()
	v.join("queue", queue, stock.QueueFamily)
	v.join("manifests", manifests, stock.ManifestFamily)
	b := over(t, v, t.TempDir(), "")
	q := moved(t, b, ports.Queue, 1, item("w", 1, ""))
	m := moved(t, b, ports.Manifest, 2, manifest("r", ""))
	manifests.Wipe()
	v.join("queue", queue, stock.QueueFamily)
	v.join("manifests", manifests, stock.ManifestFamily)
	seen(t, b, v)
	if got := at(t, b, ports.Queue); !same(got, q) {
		t.Errorf("the queue was at %v and is at %v", q, got)
	}
	if got := at(t, b, ports.Manifest); got.StoreID == m.StoreID || !isZero(got) {
		t.Errorf("the manifests were at %v and are at %v; want a new generation", m, got)
	}
}

// A Put whose answer was lost left one of two states: both are the store that it was.
func TestAKeyInDoubtMayHaveEitherState(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]func(ports.Work, act) (ports.WorkAnswer, error){"not done": lost, "done": doneAndLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			r := item("w", 1, `,"Status":"Pending"`)
			r.Change.Host = "" // a beacon that keeps columns alone says no more
			before := moved(t, b, ports.Queue, 1, r)
			v.failing("QP_UpsertWorkItem", 1, fate)
			next := item("w", 2, `,"Status":"Complete"`)
			if _, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{next}}); err == nil {
				t.Fatal("a Put without an answer succeeded")
			}
			v.join("archive", p)
			seen(t, b, v)
			if got := at(t, b, ports.Queue); !same(got, before) {
				t.Errorf("the store was at %v and is at %v", before, got)
			}
		})
	}
}

func TestAManifestThatWasRemovedMustNotComeBack(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	r := manifest("r", `,"Status":"Complete"`)
	gone := r
	gone.Gone, gone.Body = true, nil
	moved(t, b, ports.Manifest, 1, r)
	before := moved(t, b, ports.Manifest, 2, gone)
	v.join("archive", p)
	seen(t, b, v)
	if got := at(t, b, ports.Manifest); !same(got, before) {
		t.Errorf("the store was at %v and is at %v", before, got)
	}
	for _, a := range p.Actions() {
		if a.Name == "MS_UpsertManifest" {
			_, _ = a.Do(t.Context(), &stock.Work{Item: stock.Item{Settings: []byte(`{"Manifest":{"Hash":"r"}}`)}})
		}
	}
	v.join("archive", p)
	seen(t, b, v)
	if got := at(t, b, ports.Manifest); got.StoreID == before.StoreID {
		t.Error("an older copy was taken for the store")
	}
}

func TestNothingIsAnsweredBeforeTheComparison(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	moved(t, b, ports.Queue, 1, item("w", 1, ""))
	asked, let := make(chan struct{}, 8), make(chan struct{})
	v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
		asked <- struct{}{}
		<-let
		return do(w.Settings)
	})
	p.Wipe()
	v.join("archive", p)
	seen(t, b, v)
	short, cancel := below(within(t), 200*time.Millisecond)
	defer cancel()
	for what, err := range map[string]error{
		"probe": b.Probe(short, ports.Queue),
		"item":  second(b.Item(short, "w")),
		"put":   second(b.Put(short, ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("x", 2, "")}})),
	} {
		if code := ports.CodeOf(err); code != ports.Unavailable && code != ports.Deadline {
			t.Errorf("%s: %v", what, err)
		}
	}
	if len(asked) != 1 {
		t.Errorf("the beacon was asked %d things, want the one key that is compared", len(asked))
	}
	close(let)
	if err := b.Probe(within(t), ports.Queue); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// A beacon that comes back between a Put and its end: the position does not move over what another store took.
func TestAPositionNeverMovesOverWhatAnotherStoreTook(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	before := moved(t, b, ports.Queue, 1, item("w", 1, ""))
	v.failing("QP_UpsertWorkItem", 1, func(w ports.Work, do act) (ports.WorkAnswer, error) {
		p.Wipe()
		v.join("archive", p)
		return do(w.Settings)
	})
	next := ports.Position{StoreID: before.StoreID, Epoch: "e", Seqs: map[string]uint64{"h": 2}}
	_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("x", 2, "")}, After: &before, Position: &next})
	if ports.CodeOf(err) != ports.Unavailable && ports.CodeOf(err) != ports.Conflict {
		t.Errorf("got %v", err)
	}
	if got := at(t, b, ports.Queue); got.StoreID == before.StoreID {
		t.Errorf("the store was wiped and is at %v", got)
	}
}

func TestAGenerationThatEndedDoesNotMove(t *testing.T) {
	t.Parallel()
	_, _, b := settle(t)
	before := moved(t, b, ports.Queue, 1, item("w", 1, ""))
	err := (&putting{half: b.halves[ports.Queue], gen: "another"}).move(&ports.Position{Seqs: map[string]uint64{"h": 9}})
	if ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition || !same(at(t, b, ports.Queue), before) {
		t.Errorf("got %v", err)
	}
}

func TestAReadThatAnotherStoreAnswersIsNone(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	moved(t, b, ports.Queue, 1, item("w", 1, ""))
	v.failing("QP_GetWorkItemByHash", 1, func(w ports.Work, do act) (ports.WorkAnswer, error) {
		p.Wipe()
		v.join("archive", p)
		return do(w.Settings)
	})
	if _, err := b.Item(within(t), "w"); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("got %v; want unavailable, for nobody knows whether it is there", err)
	}
}

func TestWhatIsKnownOfABeaconEndsWithItsSession(t *testing.T) {
	t.Parallel()
	v, p, b := settle(t)
	rows := []ports.Row{item("w", 1, ""), event("w", "e", "")}
	put(t, b, rows...)
	put(t, b, rows...)
	if upserts, looks := v.done("QP_UpsertWorkItem"), v.done("QP_GetEvents"); upserts != 1 || looks != 1 {
		t.Errorf("%d upserts and %d looks for a repeated Put, want one each", upserts, looks)
	}
	v.join("archive", p)
	seen(t, b, v)
	put(t, b, rows...)
	if upserts, looks := v.done("QP_UpsertWorkItem"), v.done("QP_GetEvents"); upserts != 2 || looks != 3 { // one of them compares
		t.Errorf("%d upserts and %d looks after it connected anew, want 2 and 3", upserts, looks)
	}
	if n := len(p.Holds().Events["w"]); n != 1 {
		t.Errorf("the beacon has %d events, want 1", n)
	}
}

func TestASecondBeaconIsNotTakenWhileTheFirstOneIsKnown(t *testing.T) {
	t.Parallel()
	v, first, b := settle(t)
	var now atomic.Int64
	for _, h := range b.halves {
		h.clock = func() time.Time { return time.Unix(now.Load(), 0) }
	}
	before := moved(t, b, ports.Queue, 1, item("w", 1, ""))
	second := stock.NewPersistence()
	v.join("another", second)
	v.offline("archive")
	seen(t, b, v)
	away := func() {
		t.Helper()
		if err := b.Probe(within(t), ports.Queue); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("probe: %v; want unavailable", err)
		}
	}
	now.Store(10_000)
	away()
	v.forget("archive")
	seen(t, b, v)
	away() // it may come back: the host was started a moment ago, perhaps
	now.Store(10_000 + int64(forgotten/time.Second) - 1)
	away()
	now.Store(10_000 + int64(forgotten/time.Second))
	if got := at(t, b, ports.Queue); got.StoreID == before.StoreID || !isZero(got) {
		t.Errorf("another beacon is at %v", got)
	}
	put(t, b, item("x", 2, ""))
	if len(second.Holds().Items) != 1 || len(first.Holds().Items) != 1 {
		t.Errorf("the first has %d items, the other %d; want one each", len(first.Holds().Items), len(second.Holds().Items))
	}
	v.join("archive", first) // and now the other one is kept
	seen(t, b, v)
	put(t, b, item("y", 3, ""))
	if len(second.Holds().Items) != 2 {
		t.Error("the first beacon was taken back without a word")
	}
}

func TestAFamilyThatNobodyOffersWaitsAlone(t *testing.T) {
	t.Parallel()
	_, p, b := settle(t, stock.ManifestFamily)
	put(t, b, manifest("r", ""))
	if err := b.Probe(within(t), ports.Manifest); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"probe":    b.Probe(within(t), ports.Queue),
		"position": second(b.Position(within(t), ports.Queue)),
		"put":      second(b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 1, "")}})),
		"read":     second(b.Item(within(t), "w")),
	} {
		if ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("%s: %v; want unavailable", what, err)
		}
	}
	if len(p.Holds().Manifests) != 1 {
		t.Error("the manifest is not there")
	}
}

func TestTheBeaconOfTheOptionsIsTaken(t *testing.T) {
	t.Parallel()
	v, first, second := newVillage(), stock.NewPersistence(), stock.NewPersistence()
	v.join("first", first)
	v.join("second", second)
	b := over(t, v, t.TempDir(), `{"beacon":"second"}`)
	put(t, b, item("w", 1, ""))
	if len(second.Holds().Items) != 1 || len(first.Holds().Items) != 0 {
		t.Error("the item is not where it should be")
	}
	nobody := over(t, v, t.TempDir(), `{"beacon":"nobody"}`)
	if err := nobody.Probe(within(t), ports.Queue); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("probe of a beacon that is not known: %v", err)
	}
}

func TestOptionsAreCheckedByName(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"beacon":5}`: "beacon", `{"timeout":"soon"}`: "timeout", `{"timeout":"1ms"}`: "timeout", `{"timeout":"2h"}`: "timeout", `{"colour":1}`: "colour",
	} {
		if _, err := parseOptions([]byte(text)); ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != field {
			t.Errorf("%s: %v; want invalid in %s", text, err, field)
		}
	}
	if s, err := parseOptions([]byte(`{"beacon":"b","timeout":"2s"}`)); err != nil || s.beacon != "b" || s.timeout != 2*time.Second {
		t.Errorf("got %+v, %v", s, err)
	}
}
