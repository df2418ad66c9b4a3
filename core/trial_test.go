package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Keys that a follower's store does not survive: they are found, put aside, and nobody else suffers for them.

func chunkOf(keys ...string) (c chunk) {
	c.alone = len(keys) == 1
	for _, key := range keys {
		g := group{key: key, rows: []ports.Row{itemRow(key, "", 1)}, first: 1, last: 1}
		c.groups, c.rows = append(c.groups, g), append(c.rows, g.rows...)
	}
	return c
}

func TestAKeyIsGuiltyAfterThreeDeathsAloneAndClearedByASuccess(t *testing.T) {
	t.Parallel()
	var tr trial
	fails := func(want string, keys ...string) {
		t.Helper()
		if got := tr.failed(chunkOf(keys...)); got != want {
			t.Errorf("after the death of %v, %q is guilty, want %q", keys, got, want)
		}
	}
	fails("", "a", "b", "c")
	if tr.suspects("a") {
		t.Error("a is under suspicion after one death in company")
	}
	fails("", "a", "b")
	if !tr.suspects("a") || !tr.suspects("b") || tr.suspects("c") {
		t.Error("not a and b are under suspicion after two deaths in company")
	}
	tr.passed(chunkOf("b").groups)
	if tr.suspects("b") {
		t.Error("b is under suspicion, and was taken")
	}
	fails("", "a")
	fails("", "a")
	fails("a", "a")
	if tr.suspects("a") {
		t.Error("a is under suspicion, and was found guilty")
	}
	fails("", "d")
	if !tr.suspects("d") {
		t.Error("d is not under suspicion after a death alone")
	}
	tr.passed(chunkOf("d").groups)
	fails("", "d")
	fails("", "d")
	fails("d", "d")
}

// poisoned says whether a key of the queue family is given up for a follower as poison.
func (s *stage) poisoned(name, key string) bool {
	return s.host.follower(name, ports.Queue).keys.kind(key) == ports.PoisonKey
}

// goesOn waits until a follower has everything but the keys that it gave up.
func (s *stage) goesOn(name string, limit time.Duration) {
	s.t.Helper()
	ok := s.until(limit, func() bool {
		f := s.follower(name, ports.Queue)
		return f.Phase == string(modeReady) && f.Behind == 0 && f.InDoubt == 0
	})
	if !ok {
		s.t.Errorf("%s does not go on within %s: %+v", name, limit, s.backend(name))
	}
}

func (m *mirror) died() (n int) {
	m.change(func(m *mirror) { n = m.deaths })
	return n
}

func TestAKeyThatKillsTheStoreIsFoundAndTheOthersGetThrough(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]putFate{
		"dies":                         {kind: putDies},
		"takes it and dies":            {kind: putLoses},
		"hangs":                        {kind: putHangs},
		"is silent":                    {kind: putSilent},
		"says that it has a defect":    {kind: putRefuses, err: ports.Errorf(ports.Internal, "mirror", "a panic")},
		"dies after a while":           {kind: putDies, after: time.Second},
		"says that it took fewer rows": {kind: putWrong, done: -1},
		"says that it took more rows":  {kind: putWrong, done: 1},
	} {
		for _, slots := range []int{0, 1, 3} {
			playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots = slots }) }, func(t *testing.T, s *stage) {
				m := s.mirror("mirror")
				s.catchesUp("mirror", 5*time.Second)
				m.suffers(onPut("k3", fate))
				for i := range 8 {
					s.host.Begin(upsert(fmt.Sprint("k", i), "Running"))
				}
				if !s.until(3*time.Minute, func() bool { return s.poisoned("mirror", "k3") }) {
					t.Errorf("%s, %d slots: the key is not found: %+v", name, slots, s.backend("mirror"))
				}
				s.goesOn("mirror", 2*time.Minute)
				keys, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 10)
				if err != nil || len(keys) != 1 {
					t.Errorf("%s, %d slots: unsettled are %+v %v", name, slots, keys, err)
				}
				deaths := m.died()
				s.in(2 * time.Minute)
				if m.died() != deaths {
					t.Errorf("%s, %d slots: the store died %d times more", name, slots, m.died()-deaths)
				}
				for _, d := range s.differences("mirror") {
					if !strings.Contains(d, "k3") {
						t.Errorf("%s, %d slots: %s", name, slots, d)
					}
				}
				m.suffers(nil)
				if _, err := s.host.RetryUnsettled("mirror", ports.Queue, "k3"); err != nil {
					t.Error(err)
				}
				if !s.until(time.Minute, func() bool { return s.follower("mirror", ports.Queue).Unsettled == 0 }) {
					t.Errorf("%s, %d slots: the key stays unsettled", name, slots)
				}
				s.equal("mirror")
			})
		}
	}
}

func TestAPoisonKeyThatIsTriedAgainAndStillKillsIsPoisonAgain(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		m.suffers(onPut("k", putFate{kind: putDies}))
		s.does(upsert("k", "Running"), Done)
		if !s.until(time.Minute, func() bool { return s.poisoned("mirror", "k") }) {
			t.Fatal("the key is not found")
		}
		s.goesOn("mirror", 2*time.Minute)
		deaths := m.died()
		if _, err := s.host.RetryUnsettled("mirror", ports.Queue, "k"); err != nil {
			t.Fatal(err)
		}
		s.in(time.Minute)
		if !s.poisoned("mirror", "k") || m.died() < deaths+1 || m.died() > deaths+3 {
			t.Errorf("the key is poison: %v; the store died %d times of the retry", s.poisoned("mirror", "k"), m.died()-deaths)
		}
		deaths = m.died()
		s.in(5 * time.Minute)
		if m.died() != deaths {
			t.Errorf("nobody asked, and the store died %d times more", m.died()-deaths)
		}
		s.goesOn("mirror", 5*time.Second)
	})
}

func TestALargeKeyOfWhichOnlyALaterPartKillsTheStoreIsFound(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.follows("mirror")
		for _, j := range s.journals {
			j.bounds.Limit = 1 << 30
		}
	}, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		m.suffers(func(b *ports.Batch) putFate {
			for _, row := range b.Rows {
				if row.GUID == "e4" {
					return putFate{kind: putDies}
				}
			}
			return putFate{}
		})
		s.does(upsert("k", "Running"), Done)
		s.catchesUp("mirror", 10*time.Second)
		m.change(func(m *mirror) { m.back = 0 })
		m.kill(nil) // all of it comes in one page
		big := strings.Repeat("x", 2<<20)
		for i := range 5 {
			s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":"k","EventGUID":"e%d","Payload":{"Text":%q}}}`, i, big), Done)
		}
		s.does(upsert("other", "Running"), Done)
		m.change(func(m *mirror) { m.back = 20 * time.Millisecond })
		m.start()
		if !s.until(2*time.Minute, func() bool { return s.poisoned("mirror", "k") }) {
			t.Errorf("the key is not found; the store died %d times", m.died())
		}
		s.goesOn("mirror", 2*time.Minute)
		if _, there := m.row(ports.KindItem, "other", "", 0); !there {
			t.Error("the other key is not there")
		}
	})
}

func TestAKeyThatIsUnderWayBesideOneThatKillsIsNotBlamed(t *testing.T) {
	t.Parallel()
	for range 5 {
		playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots = 5 }) }, func(t *testing.T, s *stage) {
			m := s.mirror("mirror")
			s.catchesUp("mirror", 5*time.Second)
			m.suffers(func(b *ports.Batch) putFate {
				for _, row := range b.Rows {
					if row.Key == "killer" {
						return putFate{kind: putDies, after: 300 * time.Millisecond}
					}
				}
				return putFate{after: 400 * time.Millisecond}
			})
			s.host.Begin(upsert("killer", "Running"))
			for i := range 12 {
				s.host.Begin(upsert(fmt.Sprint("k", i), "Running"))
			}
			if !s.until(3*time.Minute, func() bool { return s.poisoned("mirror", "killer") }) {
				t.Errorf("the key is not found: %+v", s.backend("mirror"))
			}
			s.goesOn("mirror", 2*time.Minute)
			keys, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 10)
			if err != nil || len(keys) != 1 {
				t.Errorf("unsettled are %+v %v", keys, err)
			}
		})
	}
}

func TestAStoreThatTakesNoWriteAtAllBlamesNoKey(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		s.catchesUp("mirror", 5*time.Second)
		m.suffers(every(putFate{kind: putRefuses, err: ports.Errorf(ports.Internal, "mirror", "a defect")}))
		m.change(func(m *mirror) { m.probe = errBusy })
		s.does(upsert("k", "Running"), Done)
		s.in(time.Minute)
		m.suffers(every(putFate{kind: putRefuses, err: errBusy}))
		m.change(func(m *mirror) { m.probe = nil })
		s.in(time.Minute)
		if n := s.follower("mirror", ports.Queue).Unsettled; n != 0 {
			t.Errorf("%d keys are unsettled", n)
		}
		m.suffers(nil)
		s.catchesUp("mirror", 2*time.Minute)
		s.equal("mirror")
	})
}
