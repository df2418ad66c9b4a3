package postgres

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// A store in memory that calls the same Decide says what the tables must hold after any writes, however they are cut into
// batches, folded, cached and reopened.

type memory struct {
	held map[place]*ports.Held
	gone map[grave]bool
	keys map[string]string // of events: their items

	early []ports.Entry
}

func newMemory() *memory {
	return &memory{held: map[place]*ports.Held{}, gone: map[grave]bool{}, keys: map[string]string{}}
}

func (m *memory) Item(key string) (*ports.Held, error) { return m.held[place{items, key, 0}], nil }
func (m *memory) Event(id string) (*ports.Held, error) { return m.held[place{events, id, 0}], nil }
func (m *memory) Attempt(key string, n int64) (*ports.Held, error) {
	return m.held[place{attempts, key, n}], nil
}
func (m *memory) Manifest(key string) (*ports.Held, error) {
	return m.held[place{manifests, key, 0}], nil
}
func (m *memory) Gone(k ports.Kind, key string) (bool, error) { return m.gone[grave{k, key}], nil }

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
		delete(m.gone, grave{effect.Kind, effect.Key})
	}
	at := placeOf(effect.Kind, effect.Key, effect.GUID, effect.Number)
	switch {
	case effect.Bury:
		delete(m.held, at)
		m.gone[grave{effect.Kind, effect.Key}] = true
	case effect.Next != nil:
		m.held[at] = effect.Next
		if effect.Kind == ports.KindEvent {
			m.keys[effect.GUID] = effect.Key
		}
	}
	return effect.Decision, effect.Arrives()
}

var (
	modelKeys   = []string{"w1", "W1", "w1 ", "wé", "we\u0301", "a'b\"c%_"}
	modelValues = []string{
		`null`, `""`, `{}`, `[]`, `[ ]`, `0`, `-0`, `1`, `1.0`, `1e2`, `9007199254740993`, `18446744073709551615`, `"Pending"`, `"Complete"`,
		`"\u0041"`, `"\ud800"`, `"a\u0000b"`, `"x\/y"`, `"é\n"`, `true`, `false`, `{"a":1, "a":2}`, `[1,null]`, `"2026-11-30T02:00:00Z"`,
		`"2026-11-30T03:00:00.001+01:00"`, `"soon"`, `0.5`,
	}
	modelMembers = map[ports.Kind][]string{
		ports.KindItem: {"Status", "LastEventAt", "EnqueuedAt", "CompletedAt", "Settings", "Result", "Priority", "Health", "HealthComputedAt",
			"CancelRequested", "AttemptNumber", "Capability", "Unknown", "$raw", "$$x"},
		ports.KindEvent:    {"EventType", "Payload", "BeaconID", "Seq", "EmittedAt", "Unknown", "$absent"},
		ports.KindAttempt:  {"BeaconID", "OtherBeaconIDs", "Outcome", "Error", "ErrorMessage", "CompletedAt", "DispatchedAt", "StartedAt", "Unknown"},
		ports.KindManifest: {"Status", "StopTime", "StartTime", "ElapsedMs", "Output", "Log", "OperationHash"},
	}
)

func someEntry(family ports.Family) *rapid.Generator[ports.Entry] {
	return rapid.Custom(func(t *rapid.T) ports.Entry {
		writes := ports.Writes[:5]
		if family == ports.Manifest {
			writes = ports.Writes[5:]
		}
		action := rapid.SampledFrom(writes).Draw(t, "action")
		key := rapid.SampledFrom(modelKeys).Draw(t, "key")
		kind := map[ports.Action]ports.Kind{
			ports.AppendEvent: ports.KindEvent, ports.InsertAttempt: ports.KindAttempt, ports.UpdateAttemptOutcome: ports.KindAttempt,
			ports.UpsertManifest: ports.KindManifest,
		}[action]
		if kind == "" {
			kind = ports.KindItem
		}
		var parts []string
		if rapid.Bool().Draw(t, "with key") {
			parts = append(parts, fmt.Sprintf("%q:%s", ports.TableOf(kind).Key, ports.AppendQuoted(nil, key)))
		}
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(modelMembers[kind]), 0, 6, rapid.ID).Draw(t, "members") {
			parts = append(parts, fmt.Sprintf("%q:%s", name, rapid.SampledFrom(modelValues).Draw(t, name)))
		}
		e := entry(0, action, key, "{"+strings.Join(parts, ",")+"}")
		if action == ports.RemoveManifest {
			e.Record = nil
		}
		e.Number = rapid.Int64Range(1, 2).Draw(t, "number")
		e.EventGUID = rapid.SampledFrom([]string{"g1", "g2", "g3", "g4"}).Draw(t, "guid")
		e.GUIDGiven = rapid.Bool().Draw(t, "given")
		if rapid.IntRange(0, 3).Draw(t, "class") == 0 {
			e.Class = ports.Reflush
		}
		if rapid.IntRange(0, 2).Draw(t, "hub") == 0 {
			e.Stamp = ports.Stamp{Ms: rapid.Int64Range(1796004734800, 1796004734803).Draw(t, "ms"), Count: rapid.Uint64Range(1, 3).Draw(t, "count")}
		}
		return e
	})
}

func TestTheTablesHoldWhatAStoreInMemoryHolds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	if _, err := openStore(t, dsn).Stand(t.Context(), host); err != nil { // makes the tables
		t.Fatal(err)
	}
	look := session(t, dsn)
	rapid.Check(t, func(t *rapid.T) {
		empty(t, look)
		b, nonce := New(), ""
		retention := rapid.SampledFrom([]time.Duration{0, time.Hour}).Draw(t, "retention")
		open := func() {
			given := fmt.Appendf(nil, `{"dsn":%q,"pool":2}`, dsn)
			if err := b.Configure(context.Background(), ports.Configuration{Options: given}); err != nil {
				t.Fatal(err)
			}
			o := startOf(host, nonce)
			o.Retention = retention
			if err := b.Open(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			nonce += "n"
		}
		open()
		defer func() { _ = b.Close() }()
		m := newMemory()
		seqs := map[ports.Family]uint64{}
		hours := rapid.SampledFrom([]int64{1, 3_600_000}).Draw(t, "between")
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			type sent struct {
				p       ports.Pending
				want    []ports.Decision
				entries []ports.Entry
			}
			var flight []sent
			for range rapid.IntRange(1, 3).Draw(t, "batches") {
				family := rapid.SampledFrom(ports.Families).Draw(t, "family")
				entries := rapid.SliceOfN(someEntry(family), 1, 12).Draw(t, "entries")
				var want []ports.Decision
				batch := ports.CommitBatch{Family: family, Epoch: epoch, After: seqs[family]}
				for i := range entries {
					seqs[family]++
					entries[i].Seq, entries[i].ReceivedMs = seqs[family], 1796004734800+int64(seqs[family])*hours
					want = append(want, m.commit(t, &entries[i], ports.Rules{HostID: host, Retention: retention}))
				}
				batch.Through, batch.Entries = seqs[family], entries
				p, err := b.Commit(context.Background(), batch)
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
					if fmt.Sprint(plain(got[i:i+1])) != fmt.Sprint(plain(f.want[i:i+1])) || g.Applied != w.Applied || g.Dropped != w.Dropped || g.Waiting != w.Waiting {
						t.Fatalf("%s of %q %s: decided %v, want %v", e.Action, e.Key, e.Record, plain(got[i:i+1]), plain(f.want[i:i+1]))
					}
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "reopen") == 0 {
				if err := b.Close(); err != nil {
					t.Fatal(err)
				}
				b = New()
				open()
			}
			compare(t, b, look, m)
		}
	})
}

// empty leaves tables as they are made.
func empty(t *rapid.T, look *pgx.Conn) {
	for _, table := range []string{"UVQueueWorkItem", "UVQueueWorkItemEvent", "UVQueueWorkItemAttempt", "UVManifest", "UVGone", "UVEarly", "UVHoldfast"} {
		text := `DELETE FROM "` + table + `"`
		if table == "UVHoldfast" {
			text += ` WHERE "Key" NOT IN ('StoreID', 'Schema')`
		}
		if _, err := look.Exec(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
}

func stampsIn(t *rapid.T, look *pgx.Conn, p place) (stamps string) {
	if p.layout.Marks < 0 {
		return ""
	}
	text, args := `SELECT "Stamps" FROM "`+p.layout.Table.Name+`" WHERE "`+p.layout.Table.Key+`" = $1`, []any{p.key}
	if p.layout == attempts {
		text, args = text+` AND "AttemptNumber" = $2`, append(args, p.number)
	}
	if err := look.QueryRow(context.Background(), text, args...).Scan(&stamps); err != nil {
		t.Fatal(err)
	}
	return stamps
}

func plain(list []ports.Decision) []string {
	var all []string
	for _, d := range list {
		all = append(all, fmt.Sprint(d.Seq, d.Outcome, d.Err))
	}
	return all
}

// compare reads everything back through the exporter and by key.
func compare(t *rapid.T, s *Backend, look *pgx.Conn, m *memory) {
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
		return cmp.Or(cmp.Compare(a.layout.Table.Kind, b.layout.Table.Kind), cmp.Compare(a.key, b.key), cmp.Compare(a.number, b.number))
	}
	if a, b := slices.SortedFunc(maps.Keys(got), order), slices.SortedFunc(maps.Keys(m.held), order); !slices.Equal(a, b) {
		t.Fatalf("the tables have %v\nwant         %v", a, b)
	}
	standing, err := s.Stand(context.Background(), host)
	if err != nil || standing.Early != len(m.early) {
		t.Fatalf("%d early writes wait, want %d (%v)", standing.Early, len(m.early), err)
	}
	for p, want := range m.held {
		if stamps := stampsIn(t, look, p); stamps != want.Stamps {
			t.Fatalf("%v has the stamps %s, want %s", p, stamps, want.Stamps)
		}
		row := got[p]
		record, err := ports.ParseRecord(p.layout.Table, row.Body)
		if err != nil {
			t.Fatal(err)
		}
		if !record.Same(want.Record) || row.First != want.First || row.Change != want.Change {
			t.Fatalf("%v\ngot  %s %+v %+v\nwant %s %+v %+v", p, row.Body, row.First, row.Change, want.Record.JSON(), want.First, want.Change)
		}
		if p.layout == events && row.Key != m.keys[p.key] {
			t.Fatalf("event %s belongs to %q, want %q", p.key, row.Key, m.keys[p.key])
		}
		if p.layout == manifests && string(row.Body) != string(want.Record.JSON()) {
			t.Fatalf("manifest is %s\nwant        %s", row.Body, want.Record.JSON())
		}
		if p.layout != items && p.layout != manifests {
			continue
		}
		read := s.Item
		if p.layout == manifests {
			read = s.Manifest
		}
		one, err := read(context.Background(), p.key)
		if err != nil || string(one.Body) != string(row.Body) {
			t.Fatalf("read by key: %s, %v", one.Body, err)
		}
	}
}
