package core

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// Keys of which a follower may not have the present state: how they come into doubt, and when they are settled.

// oneByOne gives the Puts that hold a key their fates, one after the other; those behind are taken.
func oneByOne(key string, fates ...putFate) func(*ports.Batch) putFate {
	return func(b *ports.Batch) putFate {
		if len(fates) == 0 || !slices.ContainsFunc(b.Rows, func(r ports.Row) bool { return r.Key == key }) {
			return putFate{}
		}
		f := fates[0]
		if fates = fates[1:]; f.key == "" {
			f.key = key
		}
		return f
	}
}

// settles plays a scene in which a key is created, changed after a while, and must be right in the end.
func settles(t *testing.T, name string, fates []putFate, scene func(s *stage)) {
	t.Helper()
	for _, slots := range []int{0, 3} { // with several, the position comes in a Put of its own
		playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots = slots }) }, func(t *testing.T, s *stage) {
			s.catchesUp("mirror", 5*time.Second)
			s.mirror("mirror").suffers(oneByOne("k", fates...))
			s.does(upsert("k", "Pending"), Done)
			scene(s)
			s.in(3 * time.Minute)
			s.catchesUp("mirror", 5*time.Second)
			found := append(s.differences("mirror"), s.mirror("mirror").found()...)
			for _, d := range found {
				t.Errorf("%s, %d slots: %s", name, slots, d)
			}
		})
	}
}

func TestNoPutWithoutAnAnswerOverwritesALaterState(t *testing.T) {
	t.Parallel()
	refused := putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}
	changesAt := func(after time.Duration) func(s *stage) {
		return func(s *stage) {
			s.in(after)
			s.does(patch("k", "Complete"), Done)
		}
	}
	retriesAnd := func(after time.Duration, then func(s *stage)) func(s *stage) {
		return func(s *stage) {
			s.in(after)
			if _, err := s.host.RetryUnsettled("mirror", ports.Queue, "k"); err != nil {
				s.t.Error(err)
			}
			then(s)
		}
	}
	for _, c := range []struct {
		name  string
		fates []putFate
		scene func(s *stage)
	}{
		{"a lost Put", []putFate{{kind: putLost, after: 40 * time.Second}}, changesAt(20 * time.Second)},
		{"a Put that takes effect twice", []putFate{{kind: putTwice, after: 40 * time.Second}}, changesAt(20 * time.Second)},
		{"a late Put", []putFate{{kind: putLate, after: 30 * time.Second}}, changesAt(20 * time.Second)},
		{"a late Put, the key changed meanwhile", []putFate{{kind: putLate, after: 8 * time.Second}}, changesAt(7 * time.Second)},
		{
			"a lost Put and a late one behind it", []putFate{{kind: putLost, after: 40 * time.Second}, {kind: putLate, after: 8 * time.Second}},
			changesAt(20 * time.Second),
		},
		{
			"a late Put and a lost one behind it", []putFate{{kind: putLate, after: 15 * time.Second}, {kind: putLost, after: 40 * time.Second}},
			changesAt(30 * time.Second),
		},
		{"a lost Put of a key that was refused", []putFate{refused, {kind: putLost, after: 40 * time.Second}}, retriesAnd(time.Second, changesAt(20*time.Second))},
		{"a late Put of a key that was refused", []putFate{refused, {kind: putLate, after: 30 * time.Second}}, retriesAnd(time.Second, changesAt(20*time.Second))},
		{
			"a lost Put of a key that was given up", []putFate{refused, {kind: putLost, after: 40 * time.Second}},
			retriesAnd(time.Second, func(s *stage) {
				s.in(2 * time.Second)
				if err := s.host.DiscardUnsettled("mirror", ports.Queue, "k"); err != nil {
					s.t.Error(err)
				}
				changesAt(20 * time.Second)(s)
			}),
		},
	} {
		settles(t, c.name, c.fates, c.scene)
	}
}

func TestAKeyInDoubtIsPutAgainAtOnceAndSettledAMinuteLater(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror")
		s.config.Route = []string{"mirror", "local"}
	}, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(oneByOne("k", putFate{kind: putSilent}))
		s.does(upsert("k", "Pending"), Done)
		began := time.Now()
		s.in(putDeadline + 2*time.Second)
		if _, there := m.row(ports.KindItem, "k", "", 0); !there {
			t.Error("the key was not put again at once")
		}
		keys, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 10)
		if err != nil || len(keys) != 1 || keys[0].Kind != ports.InDoubt || keys[0].Reason == "" || keys[0].First != 1 {
			t.Errorf("unsettled are %+v %v", keys, err)
		}
		if err := s.host.DiscardUnsettled("mirror", ports.Queue, "k"); ports.CodeOf(err) != ports.Conflict {
			t.Errorf("it can be given up: %v", err)
		}
		if a := s.host.Item(t.Context(), "k"); a.Backend != "local" {
			t.Errorf("a key in doubt is read from %s", a.Backend)
		}
		if a := s.host.Items(t.Context(), ports.ItemQuery{}); a.Backend != "local" {
			t.Errorf("a list is read from %s while a key is in doubt", a.Backend)
		}
		s.until(2*time.Minute, func() bool { return s.follower("mirror", ports.Queue).InDoubt == 0 })
		if took := time.Since(began); took < doubtFor || took > doubtFor+3*time.Second {
			t.Errorf("it was settled after %s", took)
		}
		if a := s.host.Item(t.Context(), "k"); a.Backend != "mirror" || a.Stale {
			t.Errorf("it is read from %s, stale: %v", a.Backend, a.Stale)
		}
	})
}

func TestALateAnswerSettlesTheKeyAtOnce(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		m.suffers(oneByOne("k", putFate{kind: putLate, after: 12 * time.Second}))
		s.does(upsert("k", "Pending"), Done)
		s.in(11 * time.Second)
		if n := s.follower("mirror", ports.Queue).InDoubt; n != 1 {
			t.Errorf("%d keys are in doubt", n)
		}
		s.in(1500 * time.Millisecond)
		if n := s.follower("mirror", ports.Queue).InDoubt; n != 0 {
			t.Errorf("%d keys are in doubt after the answer", n)
		}
	})
}

// watched is a mirror that tells until when it may work at a Put.
type watched struct {
	*mirror
	longest time.Duration
}

func (w *watched) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	if until, ok := ctx.Deadline(); ok {
		w.change(func(*mirror) { w.longest = max(w.longest, time.Until(until)) })
	} else {
		w.change(func(*mirror) { w.longest = time.Hour })
	}
	return w.mirror.Put(ctx, b)
}

func TestNoPutMayWorkForLongerThanItIsInDoubt(t *testing.T) {
	t.Parallel()
	var w *watched
	playWith(t, func(s *stage) {
		w = &watched{mirror: s.follows("mirror")}
		s.config.Followers[0].Store = w
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Pending"), Done)
		s.catchesUp("mirror", 5*time.Second)
		if w.longest == 0 || w.longest > doubtFor {
			t.Errorf("a Put may work for %s, and is in doubt for %s", w.longest, doubtFor)
		}
	})
}

func TestWhatWasInDoubtBeforeAStartWaitsItsWholeMinute(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		s.catchesUp("mirror", 5*time.Second)
		m := s.mirror("mirror")
		// The first Put is silent. The second one, a minute later, takes effect long after the host has died of it.
		m.suffers(oneByOne("k", putFate{kind: putSilent}, putFate{}, putFate{kind: putLost, after: 50 * time.Second}))
		s.does(upsert("k", "Pending"), Done)
		s.in(doubtFor + 2*time.Second)
		if n := s.follower("mirror", ports.Queue).InDoubt; n != 1 {
			t.Fatalf("%d keys are in doubt", n)
		}
		s.dies()
		s.in(5 * time.Second)
		s.does(patch("k", "Complete"), Done)
		s.in(3 * time.Minute)
		s.catchesUp("mirror", time.Second)
		s.equal("mirror")
	})
}

func TestOnlyTheLimitOfUnsettledKeysNeedsAPerson(t *testing.T) {
	t.Parallel()
	limit := ports.Error{Code: ports.Full, Limit: ports.MaxUnsettled, Size: ports.MaxUnsettled + 1, Message: "too many"}
	if need, ok := errors.AsType[*needError](needing(&limit)); !ok || need.remedy == "" {
		t.Errorf("at the limit: %v", needing(&limit))
	}
	disk := ports.Errorf(ports.Full, "state", "no space left on device")
	if _, ok := errors.AsType[*needError](needing(disk)); ok {
		t.Error("a full disk is taken for the limit of unsettled keys")
	}
}
