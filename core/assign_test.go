package core

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"holdfast/ports"
)

// Assignments, and the followers that go to what is assigned.

// keepers makes the followers of a stage go to what is assigned; call it before the Host begins.
func (s *stage) keepers() {
	for i := range s.config.Followers {
		s.config.Followers[i].Kind = keeperKind
	}
}

// withKeeper is a stage with a follower m1 that goes to what is assigned, which is nothing at first.
func withKeeper(edit func(s *stage, m *mirror)) func(s *stage) {
	return func(s *stage) {
		m := s.follows("m1", func(m *mirror) { m.probe, m.wary = errNobody, true })
		s.keepers()
		s.config.Route = []string{"m1", "local"}
		if edit != nil {
			edit(s, m)
		}
	}
}

// assigns assigns a connection of a databeacon to all families, and has the follower learn of it as its plugin does.
func (s *stage) assigns(connection int64, d *mirrorDisk) {
	s.t.Helper()
	_, changed := s.host.Assigned()
	learnt := make(chan struct{})
	go func() {
		defer close(learnt)
		<-changed
		s.mirror("m1").change(func(m *mirror) {
			m.probe = nil
			m.replace(d)
		})
	}()
	if err := s.host.Assign(nil, "databeacon", connection); err != nil {
		s.t.Fatal(err)
	}
	<-learnt
}

// another is a database that has the same records and is not the same.
func another(m *mirror, id string) *mirrorDisk {
	d := m.look()
	d.id, d.positions = id, newMirrorDisk(id).positions
	return d
}

func (s *stage) assignment(f ports.Family) AssignmentStatus {
	s.t.Helper()
	list := s.host.Status().Assignments
	i := slices.IndexFunc(list, func(a AssignmentStatus) bool { return a.Family == f })
	if i < 0 {
		s.t.Fatalf("nothing is told of %s", f)
	}
	return list[i]
}

// isSoon waits at most two seconds for a state of both families.
func (s *stage) isSoon(state string) {
	s.t.Helper()
	is := func() bool {
		return s.assignment(ports.Queue).State == state && s.assignment(ports.Manifest).State == state
	}
	if !s.until(2*time.Second, is) {
		s.t.Errorf("after two seconds it is %+v, not %s", s.host.Status().Assignments, state)
	}
}

func TestAnAssignmentStandsUntilTheNextOne(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		first, changed := s.host.Assigned()
		if err := s.host.Assign([]ports.Family{ports.Queue}, "databeacon", 3); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
		default:
			t.Error("nobody is told")
		}
		now, changed := s.host.Assigned()
		want := ports.Assignment{BeaconID: "databeacon", IDBeaconConnection: 3, AssignedAt: "2000-01-01T00:00:00.000Z"}
		if len(first) != 0 || len(now) != 1 || now[ports.Queue] != want {
			t.Errorf("assigned is %+v, and before %+v", now, first)
		}
		s.in(time.Minute)
		if err := s.host.Assign([]ports.Family{ports.Queue}, "databeacon", 3); err != nil {
			t.Error(err)
		}
		select {
		case <-changed:
			t.Error("it is told as new what was assigned already")
		default:
		}
		s.again()
		if now, _ = s.host.Assigned(); len(now) != 1 || now[ports.Queue] != want {
			t.Errorf("after another start it is %+v", now)
		}
		if err := s.host.Assign(nil, "databeacon", 4); err != nil {
			t.Error(err)
		}
		if now, _ = s.host.Assigned(); len(now) != 2 || now[ports.Queue].IDBeaconConnection != 4 || now[ports.Queue].AssignedAt != "2000-01-01T00:01:00.000Z" {
			t.Errorf("assigned is %+v", now)
		}
		if err := s.host.Unassign(nil); err != nil {
			t.Error(err)
		}
		if now, _ = s.host.Assigned(); len(now) != 0 {
			t.Errorf("assigned is %+v", now)
		}
	})
}

func TestABeaconIsAssignedByItsNameOrAnIDThatLeadsToIt(t *testing.T) {
	t.Parallel()
	beacons := ports.Beacons{List: []ports.Beacon{{Name: "Data One", ID: "bcn-data-one-1700000000000"}, {Name: "bcn-x-1", ID: "bcn-bcn-x-1-1700000000001"}}}
	playWith(t, func(s *stage) { s.config.Beacons = func() ports.Beacons { return beacons } }, func(t *testing.T, s *stage) {
		for given, want := range map[string]string{
			"Data One": "Data One", "bcn-data-one-1700000000000": "Data One", "bcn-data-one-1600000000000": "Data One", "bcn-x-1": "bcn-x-1",
			"later": "later", "bcn-later-1700000000000": "bcn-later-1700000000000",
		} {
			if err := s.host.Assign(nil, given, 1); err != nil {
				t.Error(err)
			}
			now, _ := s.host.Assigned()
			if now[ports.Queue].BeaconID != want || now[ports.Manifest].BeaconID != want {
				t.Errorf("%q is kept as %+v", given, now)
			}
		}
		beacons.List[0].ID = "bcn-data-one-1700000000009"
		at := func() ports.Assignment { now, _ := s.host.Assigned(); return now[ports.Queue] }
		if err := s.host.Assign(nil, "bcn-later-1700000000000", 1); err != nil {
			t.Error(err)
		}
		before := at()
		s.in(time.Minute)
		beacons.List = append(beacons.List, ports.Beacon{Name: "later", ID: "bcn-later-1700000000010"})
		if err := s.host.Assign(nil, "later", 1); err != nil {
			t.Error(err)
		}
		if before.BeaconID = "later"; at() != before {
			t.Errorf("the same one under its Name is %+v, want %+v", at(), before)
		}
	})
}

func TestWhatCannotBeAssignedIsRefusedInItsField(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		for _, c := range []struct {
			beacon     string
			connection int64
			field      string
		}{
			{"", 1, "BeaconID"}, {"b", 0, "IDBeaconConnection"}, {"b", -1, "IDBeaconConnection"}, {"b\xff", 1, "BeaconID"}, {strings.Repeat("b", 513), 1, "BeaconID"},
		} {
			err := s.host.Assign(nil, c.beacon, c.connection)
			if e := ports.AsError(err); err == nil || e.Field != c.field || !e.Code.Permanent() {
				t.Errorf("%.20q %d: %v", c.beacon, c.connection, err)
			}
		}
		if now, _ := s.host.Assigned(); len(now) != 0 {
			t.Errorf("assigned is %+v", now)
		}
	})
}

func TestAReassignedFollowerBeginsAtOnceAndHasEverything(t *testing.T) {
	t.Parallel()
	playWith(t, withKeeper(nil), func(t *testing.T, s *stage) {
		s.isSoon("unassigned")
		s.many(100, "a")
		one, two := newMirrorDisk("one"), newMirrorDisk("two")
		s.assigns(1, one)
		s.isSoon("bootstrapped")
		s.catchesUp("m1", 2*time.Second)
		s.answeredBy("a0001", "m1")
		s.many(100, "b")

		s.assigns(2, two)
		if a := s.host.Item(t.Context(), "a0001"); a.Situation != Done || a.Stale {
			t.Errorf("meanwhile a read is answered %s", a.AppendJSON(nil))
		}
		s.many(100, "c")
		s.isSoon("bootstrapped")
		s.catchesUp("m1", 2*time.Second)
		s.equal("m1")
		if had := one.copied(); len(had.rows) > 400 {
			t.Errorf("the one before has %d rows", len(had.rows))
		}

		s.many(100, "d")
		s.mirror("m1").change(func(m *mirror) { m.probe = errNobody })
		synctest.Wait() // no probe is under way that was good before
		if err := s.host.Unassign(nil); err != nil {
			t.Fatal(err)
		}
		s.isSoon("unassigned")
		had := len(s.mirror("m1").look().rows)
		s.many(100, "e")
		s.in(10 * time.Second)
		if has := len(s.mirror("m1").look().rows); has != had {
			t.Errorf("what is not assigned got %d rows", has-had)
		}

		s.assigns(1, one)
		s.isSoon("bootstrapped")
		s.catchesUp("m1", 2*time.Second)
		s.equal("m1")
	})
}

func TestAStoreThatNobodyHasLookedAtAnswersNothing(t *testing.T) {
	t.Parallel()
	playWith(t, withKeeper(nil), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.assigns(1, newMirrorDisk("one"))
		s.catchesUp("m1", 3*time.Second)
		m := s.mirror("m1")
		for i := range 40 { // at every phase of the looks
			m.becomes(another(m, "other"+strings.Repeat("+", i)))
			s.in(time.Duration(i) * 50 * time.Millisecond)
			if a := s.host.Item(t.Context(), "a0001"); a.Situation != Done || a.Backend == "m1" && s.follower("m1", ports.Queue).Phase != string(modeReady) {
				t.Errorf("%d: a read is answered %s by %s", i, a.AppendJSON(nil), a.Backend)
			}
			s.catchesUp("m1", 10*time.Second)
		}
	})
}

func TestAReadThatBeganBeforeALookFoundAnotherStoreIsAskedElsewhere(t *testing.T) {
	t.Parallel()
	playWith(t, withKeeper(func(_ *stage, m *mirror) { m.wary = false }), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.assigns(1, newMirrorDisk("one"))
		s.catchesUp("m1", 3*time.Second)
		m := s.mirror("m1")
		m.change(func(m *mirror) { m.delays = 600 * time.Millisecond })
		for i := range 20 {
			s.in(time.Duration(i) * 100 * time.Millisecond)
			told := make(chan Answer)
			go func() { told <- s.host.Item(t.Context(), "a0001") }()
			s.in(10 * time.Millisecond)
			w := s.host.follower("m1", ports.Queue)
			m.becomes(newMirrorDisk("other" + strings.Repeat("+", i)))
			w.checkStore(t.Context())
			if a := <-told; a.Situation != Done || a.Backend == "m1" {
				t.Errorf("%d: a read is answered %s by %s", i, a.AppendJSON(nil), a.Backend)
			}
			s.catchesUp("m1", 10*time.Second)
		}
	})
}

func TestAReadWaitsForTheLookAtTheStoreThatIsUnderWay(t *testing.T) {
	t.Parallel()
	playWith(t, withKeeper(nil), func(t *testing.T, s *stage) {
		s.many(20, "a")
		s.assigns(1, newMirrorDisk("one"))
		s.catchesUp("m1", 3*time.Second)
		s.in(eagerFor)
		m, w := s.mirror("m1"), s.host.follower("m1", ports.Queue)
		m.change(func(m *mirror) { m.ponders = 400 * time.Millisecond })
		for _, other := range []bool{true, false} {
			if other {
				m.becomes(another(m, "other"))
			}
			looked := make(chan struct{})
			go func() {
				defer close(looked)
				w.checkStore(t.Context())
			}()
			s.in(10 * time.Millisecond)
			if a := s.host.Item(t.Context(), "a0001"); a.Situation != Done || (a.Backend == "m1") == other {
				t.Errorf("a read is answered %s by %s, another store: %v", a.AppendJSON(nil), a.Backend, other)
			}
			<-looked
			s.catchesUp("m1", 10*time.Second)
		}
	})
}

func TestAStoreThatCallsItselfOtherwiseEachTimeNeedsAPerson(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(func(m *mirror) { m.fickle = true }), func(t *testing.T, s *stage) {
		s.many(10, "a")
		if !s.until(2*time.Second, func() bool { return s.backend("m1").State == string(needsOne) }) {
			t.Fatalf("it is %+v", s.backend("m1"))
		}
		if b := s.backend("m1"); !strings.Contains(b.Detail, "another store each time") || b.Remedy == "" {
			t.Errorf("it says %q and %q", b.Detail, b.Remedy)
		}
		s.in(2 * time.Minute)
		if rows := s.mirror("m1").rows; rows > 0 {
			t.Errorf("%d rows were copied to it", rows)
		}
		s.mirror("m1").change(func(m *mirror) { m.fickle = false })
		s.catchesUp("m1", errorRetry+5*time.Second)
	})
}

func TestFamiliesMayBeKeptInTwoStores(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("m1"); s.follows("m2") }, func(t *testing.T, s *stage) {
		queue, manifest := s.host.follower("m1", ports.Queue), s.host.follower("m1", ports.Manifest)
		if err := s.host.claim(queue, "one"); err != nil {
			t.Error(err)
		}
		if err := s.host.claim(manifest, "two"); err != nil {
			t.Error(err)
		}
		if got := s.backend("m1").StoreID; got != "one, two" {
			t.Errorf("its stores are %q", got)
		}
		for _, id := range []string{"one", "two"} {
			if err := s.host.claim(s.host.follower("m2", ports.Queue), id); ports.CodeOf(err) != ports.Conflict {
				t.Errorf("another backend in the store %s: %v", id, err)
			}
		}
	})
}

func TestTheStatusTellsHowItStandsWithWhatIsAssigned(t *testing.T) {
	t.Parallel()
	online := ports.Beacon{Name: "one", Online: true, Capabilities: []string{ports.MeadowProxy}}
	tagged := online
	tagged.Tags = map[string]json.RawMessage{ports.ConnectionTag: json.RawMessage(`"7"`)}
	former := online
	former.Name, former.ID = "One", "one"
	away, other := online, online
	away.Online, other.Capabilities = false, []string{"Shell"}
	for name, c := range map[string]struct {
		keeper  bool
		assign  bool
		beacons []ports.Beacon
		probe   error
		want    AssignmentStatus
	}{
		"nothing, and nothing to keep it":      {want: AssignmentStatus{State: "unassigned"}},
		"nothing":                              {keeper: true, probe: errNobody, want: AssignmentStatus{State: "unassigned", Backend: "m1"}},
		"assigned without a backend for it":    {assign: true, beacons: []ports.Beacon{online}, want: AssignmentStatus{State: "error", BeaconID: "one", Detail: "no backend of the kind meadowproxy", Remedy: `backend "meadowproxy"`}},
		"tagged without a backend for it":      {beacons: []ports.Beacon{tagged}, want: AssignmentStatus{State: "unassigned", BeaconID: "one", Tagged: true, Detail: "no backend of the kind meadowproxy"}},
		"assigned":                             {keeper: true, assign: true, beacons: []ports.Beacon{online}, want: AssignmentStatus{State: "bootstrapped", Backend: "m1", BeaconID: "one"}},
		"tagged":                               {keeper: true, beacons: []ports.Beacon{tagged}, want: AssignmentStatus{State: "bootstrapped", Backend: "m1", BeaconID: "one", Tagged: true}},
		"assigned to one that never came":      {keeper: true, assign: true, probe: errBusy, want: AssignmentStatus{State: "waiting-for-beacon", Backend: "m1", BeaconID: "one", Detail: "no beacon called one", Remedy: "start it"}},
		"assigned to one that is away":         {keeper: true, assign: true, probe: errBusy, beacons: []ports.Beacon{away}, want: AssignmentStatus{State: "waiting-for-beacon", Backend: "m1", BeaconID: "one", Detail: "is not connected", Remedy: "start it"}},
		"assigned to one that cannot do it":    {keeper: true, assign: true, probe: errBusy, beacons: []ports.Beacon{other}, want: AssignmentStatus{State: "waiting-for-beacon", Backend: "m1", BeaconID: "one", Detail: "does not offer the capability MeadowProxy", Remedy: "assign a databeacon"}},
		"assigned by an id that it had":        {keeper: true, assign: true, beacons: []ports.Beacon{former}, want: AssignmentStatus{State: "bootstrapped", Backend: "m1", BeaconID: "One"}},
		"assigned, and its tables are made":    {keeper: true, assign: true, probe: errMakes, beacons: []ports.Beacon{online}, want: AssignmentStatus{State: "bootstrapping", Backend: "m1", BeaconID: "one", Detail: "makes its tables"}},
		"assigned, and its tables are wrong":   {keeper: true, assign: true, probe: errRefused, beacons: []ports.Beacon{online}, want: AssignmentStatus{State: "error", Backend: "m1", BeaconID: "one", Detail: "no such table", Remedy: "mend"}},
		"assigned, and its plugin is not told": {keeper: true, assign: true, probe: errNobody, beacons: []ports.Beacon{online}, want: AssignmentStatus{State: "waiting-for-beacon", Backend: "m1", BeaconID: "one", Detail: "assigned just now"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prepare := func(s *stage) {
				s.config.Beacons = func() ports.Beacons { return ports.Beacons{List: c.beacons} }
				if c.keeper {
					s.follows("m1", func(m *mirror) { m.probe = c.probe })
					s.keepers()
				}
			}
			playWith(t, prepare, func(t *testing.T, s *stage) {
				if c.assign {
					if err := s.host.Assign(nil, "one", 3); err != nil {
						t.Fatal(err)
					}
				}
				s.in(2 * time.Second)
				for _, f := range ports.Families {
					got, want := s.assignment(f), c.want
					connection, since := int64(0), ""
					switch {
					case c.assign:
						connection, since = 3, "2000-01-01T00:00:00.000Z"
					case want.Tagged:
						connection = 7
					}
					if got.State != want.State || got.Backend != want.Backend || got.BeaconID != want.BeaconID || got.Tagged != want.Tagged ||
						!strings.Contains(got.Detail, want.Detail) || (got.Remedy == "") != (want.Remedy == "") || !strings.Contains(got.Remedy, want.Remedy) ||
						got.IDBeaconConnection != connection || got.AssignedAt != since || (got.BootstrappedAt != "") != (want.State == "bootstrapped") {
						t.Errorf("it is %+v", got)
					}
				}
				told := strings.Join(s.host.Status().Notices, "; ")
				if wanted := c.assign && !c.keeper; strings.Contains(told, "is assigned to the beacon one") != wanted {
					t.Errorf("the notices are %q", told)
				}
			})
		})
	}
}
