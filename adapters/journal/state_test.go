package journal

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"holdfast/ports"
)

func state(t testing.TB, dir string) *State {
	t.Helper()
	s, err := OpenState(dir, StateOptions{})
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// aside is a set-aside entry with a Seq.
func aside(seq uint64, n int) ports.Aside {
	e := sized(fmt.Sprint("item-", seq), n)
	e.Seq = seq
	return ports.Aside{Entry: e, Code: ports.Invalid, Reason: "no such column", AtMs: 1767225600123}
}

func TestTheStateIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	h, err := s.Host()
	if err != nil || len(h.ID) != 36 || len(h.Nonces) != 0 {
		t.Fatalf("%+v, %v", h, err)
	}
	if _, known, err := s.Local(); known || err != nil {
		t.Fatalf("a local store is known at the first start: %v", err)
	}
	local := ports.LocalMark{Name: "local", StoreID: "S", Marks: map[ports.Family]ports.Mark{ports.Queue: {Epoch: "E", Seq: 1<<63 + 1}}}
	asides := []ports.Aside{aside(7, 600), aside(1<<40, 10)}
	asides[1].Code, asides[1].Entry.Record = "", nil
	ok(t, s.PushNonce("a"))
	ok(t, s.PushNonce("b"))
	ok(t, s.SetLocal(local))
	ok(t, s.AddLost(ports.Queue, ports.Span{From: 5, To: 9}))
	ok(t, s.SetAside(ports.Queue, asides))
	for range 2 {
		ok(t, s.Close())
		again := state(t, dir)
		if now, err := again.Host(); err != nil || now.ID != h.ID || !slices.Equal(now.Nonces, []string{"b", "a"}) {
			t.Errorf("%+v, %v", now, err)
		}
		if now, known, err := again.Local(); err != nil || !known || cmp.Diff(local, now) != "" {
			t.Errorf("%+v, %v, %v", now, known, err)
		}
		if now := must(again.Lost(ports.Queue)); !slices.Equal(now, []ports.Span{{From: 5, To: 9}}) {
			t.Errorf("%v", now)
		}
		if now := must(again.Asides(ports.Queue, 0, 10)); cmp.Diff(asides, now) != "" {
			t.Error(cmp.Diff(asides, now))
		}
		if d := again.Damaged(); len(d) > 0 || len(must(again.Lost(ports.Manifest)))+len(must(again.Asides(ports.Manifest, 0, 10))) > 0 {
			t.Errorf("damaged %v, or the families are mixed up", d)
		}
		s = again
	}
}

// must gives a value that cannot fail in a healthy test.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestAThousandNoncesAreKeptNewestFirst(t *testing.T) {
	t.Parallel()
	s := state(t, t.TempDir())
	s.db.NoSync = true
	for i := range keptNonces + 5 {
		ok(t, s.PushNonce(fmt.Sprint(i)))
	}
	h := must(s.Host())
	if len(h.Nonces) != keptNonces || h.Nonces[0] != fmt.Sprint(keptNonces+4) || h.Nonces[keptNonces-1] != "5" {
		t.Errorf("%d, from %s to %s", len(h.Nonces), h.Nonces[0], h.Nonces[len(h.Nonces)-1])
	}
}

func TestLostRangesAreKeptAscendingAndJoined(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		in := map[uint64]bool{}
		var spans []ports.Span
		for range rapid.IntRange(1, 12).Draw(r, "ranges") {
			from := rapid.Uint64Range(1, 60).Draw(r, "from")
			s := ports.Span{From: from, To: from + rapid.Uint64Range(0, 9).Draw(r, "more")}
			spans = withSpan(spans, s)
			for _, seq := range span(s.From, s.To) {
				in[seq] = true
			}
		}
		for i, s := range spans {
			if s.From > s.To || i > 0 && s.From <= spans[i-1].To+1 {
				r.Fatalf("%v", spans)
			}
			for _, seq := range span(s.From, s.To) {
				if !in[seq] {
					r.Fatalf("%d was never added: %v", seq, spans)
				}
				delete(in, seq)
			}
		}
		if len(in) > 0 {
			r.Fatalf("%v are not in %v", in, spans)
		}
	})
}

func TestACopiedDirectoryGetsAnIdentityOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	before := must(s.Host())
	ok(t, s.PushNonce("a"))
	ok(t, s.SetLocal(ports.LocalMark{Name: "local"}))
	ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(1, 10)}))
	ok(t, s.NewHostID())
	ok(t, s.Close())
	s = state(t, dir)
	h := must(s.Host())
	known, met, err := s.Local()
	if h.ID == before.ID || len(h.Nonces) > 0 || !met || !known.Renamed || err != nil || len(must(s.Asides(ports.Queue, 0, 10))) != 1 {
		t.Errorf("%+v, local %+v, %v", h, known, err)
	}
}

func TestSetAsideEntriesAreListedInOrderAndDropped(t *testing.T) {
	t.Parallel()
	s := state(t, t.TempDir())
	ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(300, 10), aside(2, 10), aside(70000, 10)}))
	ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(2, 20)})) // once more is no other
	list := func(after uint64, limit int) (all []uint64) {
		for _, a := range must(s.Asides(ports.Queue, after, limit)) {
			all = append(all, a.Entry.Seq)
		}
		return all
	}
	if got := list(0, 10); !slices.Equal(got, []uint64{2, 300, 70000}) || s.asides != 3 {
		t.Errorf("%v, counted %d", got, s.asides)
	}
	if got := list(2, 1); !slices.Equal(got, []uint64{300}) {
		t.Errorf("%v", got)
	}
	ok(t, s.DropAside(ports.Queue, 300, 4711, 2))
	if got := list(0, 10); !slices.Equal(got, []uint64{70000}) || s.asides != 1 {
		t.Errorf("%v, counted %d", got, s.asides)
	}
}

func TestSettingAsideEndsAtItsLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	var many []ports.Aside
	for i := range ports.MaxAsides {
		many = append(many, aside(uint64(i+1), 10))
	}
	ok(t, s.SetAside(ports.Queue, many[:600]))
	ok(t, s.SetAside(ports.Manifest, many[600:]))
	for range 2 {
		err := s.SetAside(ports.Queue, []ports.Aside{aside(5000, 10)})
		if e := ports.AsError(err); ports.CodeOf(err) != ports.Full || e.Limit != ports.MaxAsides || e.Size != ports.MaxAsides+1 {
			t.Errorf("%v", err)
		}
		ok(t, s.Close())
		s = state(t, dir) // the figures are found again
	}
	ok(t, s.DropAside(ports.Queue, 1))
	ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(5000, 10)}))
}

func TestLargeEntriesAreSetAsideUpToTheLimitInBytes(t *testing.T) {
	t.Parallel()
	s := state(t, t.TempDir())
	large := aside(1, ports.MaxRecordBytes)
	ok(t, s.SetAside(ports.Queue, []ports.Aside{large}))
	got := must(s.Asides(ports.Queue, 0, 1))
	if len(got) != 1 || !bytes.Equal(got[0].Entry.Record, large.Entry.Record) {
		t.Fatal("it did not come back")
	}
	s.bytes = ports.MaxAsideBytes - 1000
	err := s.SetAside(ports.Queue, []ports.Aside{aside(2, 2000)})
	if e := ports.AsError(err); ports.CodeOf(err) != ports.Full || e.Limit != ports.MaxAsideBytes || e.Size <= e.Limit {
		t.Errorf("%v", err)
	}
	if len(must(s.Asides(ports.Queue, 1, 1))) != 0 {
		t.Error("it was set aside all the same")
	}
}

func TestASecondOpenOfTheStateIsRefusedInTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	state(t, dir)
	start := time.Now()
	if _, err := OpenState(dir, StateOptions{}); ports.CodeOf(err) != ports.Conflict || time.Since(start) > 5*time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
}
