package tabletest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// A store in memory that calls the same Decide says what a store must hold after any writes, however they are cut into
// batches, folded, cached and reopened.

// place names one record.
type place struct {
	kind   ports.Kind
	key    string // of an event its GUID
	number int64  // of an attempt
}

func placeOf(k ports.Kind, key, guid string, number int64) place {
	switch k {
	case ports.KindEvent:
		return place{k, guid, 0}
	case ports.KindAttempt:
		return place{k, key, number}
	}
	return place{k, key, 0}
}

type memory struct {
	held map[place]*ports.Held
	gone map[place]bool
	keys map[string]string // of events: their items

	early []ports.Entry
}

func newMemory() *memory {
	return &memory{held: map[place]*ports.Held{}, gone: map[place]bool{}, keys: map[string]string{}}
}

func (m *memory) Item(key string) (*ports.Held, error) {
	return m.held[place{ports.KindItem, key, 0}], nil
}
func (m *memory) Event(id string) (*ports.Held, error) {
	return m.held[place{ports.KindEvent, id, 0}], nil
}
func (m *memory) Attempt(key string, n int64) (*ports.Held, error) {
	return m.held[place{ports.KindAttempt, key, n}], nil
}
func (m *memory) Manifest(key string) (*ports.Held, error) {
	return m.held[place{ports.KindManifest, key, 0}], nil
}
func (m *memory) Gone(k ports.Kind, key string) (bool, error) { return m.gone[place{k, key, 0}], nil }

func (m *memory) Early(key string) (waiting []ports.Entry, inAll int, err error) {
	for _, e := range m.early {
		if e.Key == key {
			waiting = append(waiting, e)
		}
	}
	return waiting, len(m.early), nil
}

// commit decides an entry, and what waited for it.
func (m *memory) commit(t *rapid.T, e *ports.Entry, rules ports.Rules) ports.Decision {
	before := len(m.early)
	m.early = slices.DeleteFunc(m.early, func(w ports.Entry) bool { return e.Action.Family() == ports.Queue && w.ReceivedMs < ports.TooEarly(e) })
	dropped := before - len(m.early)
	d, arrives := m.one(t, e, rules)
	if waiting, _, _ := m.Early(e.Key); arrives {
		m.early = slices.DeleteFunc(m.early, func(w ports.Entry) bool { return w.Key == e.Key })
		for _, w := range ports.Release(waiting, e) {
			if one, _ := m.one(t, &w, rules); one.Outcome == ports.Refused {
				d.Dropped++
			} else {
				d.Applied++
			}
		}
	}
	d.Dropped += dropped
	d.Told(len(m.early))
	return d
}

func (m *memory) one(t *rapid.T, e *ports.Entry, rules ports.Rules) (d ports.Decision, arrives bool) {
	effect, err := ports.Decide(e, m, rules)
	if err != nil {
		t.Fatal(err)
	}
	if effect.Keep {
		m.early = append(m.early, *e)
	}
	if effect.Revive {
		delete(m.gone, place{effect.Kind, effect.Key, 0})
	}
	at := placeOf(effect.Kind, effect.Key, effect.GUID, effect.Number)
	switch {
	case effect.Bury:
		delete(m.held, at)
		m.gone[place{effect.Kind, effect.Key, 0}] = true
	case effect.Next != nil:
		m.held[at] = effect.Next
		if effect.Kind == ports.KindEvent {
			m.keys[effect.GUID] = effect.Key
		}
	}
	return effect.Decision, effect.Arrives()
}

func holdsWhatMemoryHolds(t *testing.T, e *Engine) {
	places := e.Places(t)
	rapid.Check(t, func(t *rapid.T) {
		place := places(t)
		var s Store
		nonce := ""
		retention := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "retention")
		open := func() {
			s = place(t)
			if err := s.Open(context.Background(), StartOf(Host, nonce, retention)); err != nil {
				t.Fatal(err)
			}
			nonce += "n"
		}
		open()
		defer func() { _ = s.Close() }()
		m := newMemory()
		seqs := map[ports.Family]uint64{}
		hours := rapid.SampledFrom([]int64{1, 3_600_000}).Draw(t, "between")
		for range rapid.IntRange(1, e.Rounds).Draw(t, "rounds") {
			type sent struct {
				p       ports.Pending
				want    []ports.Decision
				entries []ports.Entry
			}
			var flight []sent
			for range rapid.IntRange(1, e.Batches).Draw(t, "batches") {
				family := rapid.SampledFrom(ports.Families).Draw(t, "family")
				entries := rapid.SliceOfN(someEntry(family), 1, 12).Draw(t, "entries")
				var want []ports.Decision
				b := ports.CommitBatch{Family: family, Epoch: Epoch, After: seqs[family]}
				for i := range entries {
					seqs[family]++
					entries[i].Seq, entries[i].ReceivedMs = seqs[family], 1796004734800+int64(seqs[family])*hours
					want = append(want, m.commit(t, &entries[i], ports.Rules{HostID: Host, Retention: retention}))
				}
				b.Through, b.Entries = seqs[family], entries
				p, err := s.Commit(context.Background(), b)
				if err != nil {
					t.Fatal(err)
				}
				flight = append(flight, sent{p, want, entries})
			}
			for _, f := range flight {
				got, err := f.p.Wait(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				for i, e := range f.entries {
					g, w := &got[i], &f.want[i]
					if fmt.Sprint(Plain(got[i:i+1])) != fmt.Sprint(Plain(f.want[i:i+1])) || g.Applied != w.Applied || g.Dropped != w.Dropped || g.Waiting != w.Waiting {
						t.Fatalf("%s of %q %s: decided %v, want %v", e.Action, e.Key, e.Record, Plain(got[i:i+1]), Plain(f.want[i:i+1]))
					}
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
				open()
			}
			e.compare(t, s, m)
		}
	})
}

// Plain tells decisions without what only counts.
func Plain(list []ports.Decision) []string {
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprint(d.Seq, d.Outcome, d.Err))
	}
	return all
}

func (e *Engine) stampsOf(t Failer, s Store, p place) string {
	if p.kind == ports.KindEvent {
		return "" // an event never changes
	}
	return e.Stamps(t, s, p.kind, p.key, p.number)
}

// compare reads everything back through the exporter and by key.
func (e *Engine) compare(t *rapid.T, s Store, m *memory) {
	t.Helper()
	got := map[place]ports.Row{}
	for _, f := range ports.Families {
		var after *ports.Cursor
		for {
			page, err := s.Export(context.Background(), ports.ExportQuery{Family: f, After: after, Limit: 3})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range page.Rows {
				p := placeOf(r.Kind, r.Key, r.GUID, r.Number)
				if _, twice := got[p]; twice {
					t.Fatalf("exported twice: %v", p)
				}
				got[p] = r
			}
			if after = page.Next; after == nil {
				break
			}
		}
	}
	order := func(a, b place) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	}
	if a, b := slices.SortedFunc(maps.Keys(got), order), slices.SortedFunc(maps.Keys(m.held), order); !slices.Equal(a, b) {
		t.Fatalf("the store has %v\nwant          %v", a, b)
	}
	standing, err := s.Stand(context.Background(), Host)
	if err != nil || standing.Early != len(m.early) {
		t.Fatalf("%d early writes wait, want %d (%v)", standing.Early, len(m.early), err)
	}
	for p, want := range m.held {
		if stamps := e.stampsOf(t, s, p); stamps != want.Stamps {
			t.Fatalf("%v has the stamps %s, want %s", p, stamps, want.Stamps)
		}
		row := got[p]
		record, err := ports.ParseRecord(ports.TableOf(p.kind), row.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !record.Same(want.Record) || row.First != want.First || row.Change != want.Change {
			t.Fatalf("%v\ngot  %s %+v %+v\nwant %s %+v %+v", p, row.Body, row.First, row.Change, want.Record.JSON(), want.First, want.Change)
		}
		if p.kind == ports.KindEvent && row.Key != m.keys[p.key] {
			t.Fatalf("event %s belongs to %q, want %q", p.key, row.Key, m.keys[p.key])
		}
		if p.kind == ports.KindManifest && string(row.Body) != string(want.Record.JSON()) {
			t.Fatalf("manifest is %s\nwant        %s", row.Body, want.Record.JSON())
		}
		read := map[ports.Kind]func(context.Context, string) (ports.Row, error){ports.KindItem: s.Item, ports.KindManifest: s.Manifest}[p.kind]
		if read == nil {
			continue
		}
		one, err := read(context.Background(), p.key)
		if err != nil || string(one.Body) != string(row.Body) {
			t.Fatalf("read by key: %s, %v", one.Body, err)
		}
	}
}
