package meadowproxy

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scene is a mesh that a test plays.
type scene struct {
	mu      sync.Mutex
	is      ports.Beacons
	changed chan struct{}
	sent    []ports.Work
	does    map[string]*stock.Databeacon // by the beacon's name; one without answers everything with an empty list
}

func newScene() *scene {
	return &scene{is: ports.Beacons{Version: 1, Assigned: map[ports.Family]ports.Assignment{}}, changed: make(chan struct{}), does: map[string]*stock.Databeacon{}}
}

// turn changes what is so.
func (s *scene) turn(change func(is *ports.Beacons)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := ports.Beacons{Version: s.is.Version + 1, List: slices.Clone(s.is.List), Assigned: map[ports.Family]ports.Assignment{}}
	maps.Copy(next.Assigned, s.is.Assigned)
	change(&next)
	s.is = next
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *scene) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		s.mu.Lock()
		is, changed := s.is, s.changed
		s.mu.Unlock()
		if is.Version != since {
			return is, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ports.Beacons{}, ctx.Err()
		}
	}
}

func (s *scene) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	s.mu.Lock()
	s.sent = append(s.sent, w)
	d := s.does[w.Beacon]
	there := slices.ContainsFunc(s.is.List, func(b ports.Beacon) bool { return b.Name == w.Beacon && b.Online })
	s.mu.Unlock()
	answer := ports.WorkAnswer{Beacon: w.Beacon, Outputs: json.RawMessage(`{"Status":200,"Body":"[]"}`)}
	if !there {
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "the beacon %q is not there", w.Beacon)
	}
	if d != nil {
		answer.Outputs, answer.Failure = d.Do(ctx, w.Capability, w.Action, w.Settings)
	}
	return answer, ctx.Err()
}

func databeacon(name string, session uint64) ports.Beacon {
	return ports.Beacon{Name: name, ID: "bcn-" + name + "-1", Session: session, Online: true, Capabilities: []string{ports.MeadowProxy}, MaxConcurrent: 3}
}

func assign(f ports.Family, beacon string, connection int64) func(*ports.Beacons) {
	return func(is *ports.Beacons) {
		is.Assigned[f] = ports.Assignment{BeaconID: beacon, IDBeaconConnection: connection}
	}
}

// fitter counts bootstraps and fails as long as it is told to.
type fitter struct {
	mu     sync.Mutex
	made   []seat
	now    map[string]int // under way, by beacon
	most   int
	fails  int
	lasts  time.Duration
	mesh   ports.Mesh
	stores map[seat]string
}

func (f *fitter) fit(ctx context.Context, s seat, slots int) (*binding, error) {
	f.mu.Lock()
	f.made = append(f.made, s)
	f.now[s.beacon]++
	f.most = max(f.most, f.now[s.beacon])
	failing := f.fails > 0
	f.fails--
	f.mu.Unlock()
	pause(ctx, f.lasts)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now[s.beacon]--
	if failing {
		return nil, bootstrapping(s, "EnsureSchema: no")
	}
	return &binding{seat: s, way: &way{mesh: f.mesh, beacon: s.beacon, slots: slots, known: newKnown()}, own: ledger{storeID: f.stores[s]}}, nil
}

func (f *fitter) seats() []seat {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.made)
}

// bound plays a scene with a binder in a bubble of its own time.
func bound(t *testing.T, play func(t *testing.T, s *scene, b *binder, f *fitter)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newScene()
		f := &fitter{now: map[string]int{}, mesh: s, stores: map[seat]string{}}
		life, end := context.WithCancel(t.Context())
		var work sync.WaitGroup
		b := newBinder(life, &work, s, f.fit)
		work.Go(b.watch)
		play(t, s, b, f)
		end()
		work.Wait()
	})
}

// hold asks for a hold, and waits for as long as a probe would.
func (b *binder) probe(t *testing.T, f ports.Family) (*hold, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	return b.await(ctx, f)
}

func TestAFamilyIsUnassignedUntilSomebodyAssignsIt(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		if _, err := b.probe(t, ports.Queue); ports.AsError(err).Field != ports.FieldAssignment || ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("without an assignment: %v", err)
		}
		s.turn(assign(ports.Queue, "db", 1))
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); err == nil || ports.AsError(err).Field != "" || !strings.Contains(err.Error(), `"db"`) {
			t.Errorf("assigned to a beacon that is not known: %v", err)
		}
		s.turn(func(is *ports.Beacons) { is.List = []ports.Beacon{databeacon("other", 1), databeacon("db", 2)} })
		synctest.Wait()
		if h, err := b.probe(t, ports.Queue); err != nil || h.bound.seat != (seat{"db", 2, 1}) {
			t.Errorf("its beacon is there: %v, %v", h, err)
		}
		if _, err := b.probe(t, ports.Manifest); ports.AsError(err).Field != ports.FieldAssignment {
			t.Errorf("the other family: %v", err)
		}
		s.turn(func(is *ports.Beacons) { is.List[1].Online = false })
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); err == nil || !strings.Contains(err.Error(), "not connected") {
			t.Errorf("its beacon left: %v", err)
		}
		s.turn(func(is *ports.Beacons) { delete(is.Assigned, ports.Queue) })
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); ports.AsError(err).Field != ports.FieldAssignment {
			t.Errorf("cleared: %v", err)
		}
	})
}

func TestWhatCanKeepNothingIsSaidSo(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		s.turn(func(is *ports.Beacons) {
			worker := databeacon("worker", 1)
			worker.Capabilities = []string{"Shell"}
			is.List = []ports.Beacon{worker, databeacon("db", 2)}
			assign(ports.Queue, "worker", 1)(is)
			assign(ports.Manifest, "db", 0)(is)
		})
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), ports.MeadowProxy) {
			t.Errorf("a beacon without the capability: %v", err)
		}
		if _, err := b.probe(t, ports.Manifest); ports.CodeOf(err) != ports.Invalid {
			t.Errorf("connection 0: %v", err)
		}
	})
}

func TestABeaconIsFoundByItsTag(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		s.turn(func(is *ports.Beacons) {
			db := databeacon("tagged", 4)
			db.Tags = map[string]json.RawMessage{ports.ConnectionTag: json.RawMessage(`"7"`)}
			is.List = []ports.Beacon{db}
		})
		synctest.Wait()
		if h, err := b.probe(t, ports.Manifest); err != nil || h.bound.seat != (seat{"tagged", 4, 7}) {
			t.Errorf("%v, %v", h, err)
		}
	})
}

func TestFamiliesOnOneConnectionShareABootstrapAndOthersHaveTheirOwn(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		f.lasts = 100 * time.Millisecond
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
			assign(ports.Manifest, "db", 1)(is)
		})
		q, err := b.probe(t, ports.Queue)
		m, err2 := b.probe(t, ports.Manifest)
		if err != nil || err2 != nil || q.bound != m.bound || q == m {
			t.Fatalf("%v %v %v %v", q, err, m, err2)
		}
		if made := f.seats(); len(made) != 1 {
			t.Errorf("bootstraps of %v", made)
		}
		s.turn(assign(ports.Manifest, "db", 2))
		s.turn(assign(ports.Queue, "db", 3))
		pause(t.Context(), time.Second)
		q, err = b.probe(t, ports.Queue)
		m, err2 = b.probe(t, ports.Manifest)
		if err != nil || err2 != nil || q.bound.connection != 3 || m.bound.connection != 2 {
			t.Errorf("%v %v %v %v", q, err, m, err2)
		}
		if f.most != 1 {
			t.Errorf("%d bootstraps at once at one beacon", f.most)
		}
	})
}

func TestEachSessionIsBootstrapped(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		for session := uint64(1); session <= 3; session++ {
			s.turn(func(is *ports.Beacons) {
				is.List = []ports.Beacon{databeacon("db", session)}
				assign(ports.Queue, "bcn-db-17", 1)(is)
			})
			synctest.Wait()
			if h, err := b.probe(t, ports.Queue); err != nil || h.bound.session != session {
				t.Errorf("session %d: %v, %v", session, h, err)
			}
		}
		if made := f.seats(); len(made) != 3 {
			t.Errorf("bootstraps of %v", made)
		}
	})
}

func TestABootstrapThatFailsIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		f.fails = 3
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
		})
		synctest.Wait()
		began := time.Now()
		_, err := b.probe(t, ports.Queue)
		if e := ports.AsError(err); e.Code != ports.Unavailable || e.Field != ports.FieldBootstrap || !strings.Contains(e.Message, "EnsureSchema") {
			t.Errorf("while it fails: %v", err)
		}
		if time.Since(began) > 0 {
			t.Error("what has failed is waited for")
		}
		pause(t.Context(), 4*firstPause)
		if _, err := b.probe(t, ports.Queue); ports.AsError(err).Field != ports.FieldObstacle || !strings.Contains(ports.AsError(err).Message, "EnsureSchema") {
			t.Errorf("when it has failed three times: %v", err)
		}
		pause(t.Context(), 6*firstPause)
		if _, err := b.probe(t, ports.Queue); err != nil {
			t.Errorf("after the failures: %v", err)
		}
	})
}

func TestAHoldThatIsOverSendsNothing(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(s *scene, b *binder, h *hold){
		"cleared": func(s *scene, _ *binder, _ *hold) {
			s.turn(func(is *ports.Beacons) { delete(is.Assigned, ports.Queue) })
		},
		"reassigned":     func(s *scene, _ *binder, _ *hold) { s.turn(assign(ports.Queue, "db", 2)) },
		"another beacon": func(s *scene, _ *binder, _ *hold) { s.turn(assign(ports.Queue, "db2", 1)) },
		"a new session":  func(s *scene, _ *binder, _ *hold) { s.turn(func(is *ports.Beacons) { is.List[0].Session = 9 }) },
		"gone":           func(s *scene, _ *binder, _ *hold) { s.turn(func(is *ports.Beacons) { is.List[0].Online = false }) },
		"forgot":         func(_ *scene, b *binder, h *hold) { b.forgot(h) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
				s.turn(func(is *ports.Beacons) {
					is.List = []ports.Beacon{databeacon("db", 1), databeacon("db2", 2)}
					assign(ports.Queue, "db", 1)(is)
				})
				synctest.Wait()
				h, err := b.probe(t, ports.Queue)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := h.request(t.Context(), ports.ClassRead, "GET", "/1.0/a/UVManifests", nil, ""); err != nil {
					t.Fatalf("before: %v", err)
				}
				if session := s.sent[0].Session; session != 1 {
					t.Errorf("it was sent to session %d", session)
				}
				end(s, b, h)
				synctest.Wait()
				_, err = h.request(t.Context(), ports.ClassRead, "GET", "/1.0/a/UVManifests", nil, "")
				if ports.CodeOf(err) != ports.Unavailable || len(s.sent) != 1 {
					t.Errorf("afterwards: %v, %d works were sent", err, len(s.sent))
				}
				if err := b.now(t.Context(), ports.Queue, h); err == nil {
					t.Error("it is said to be the one that the family has")
				}
			})
		})
	}
}

func TestABindingThatIsForgottenAtOnceIsNotMadeAgainInACircle(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
		})
		for until := time.Now().Add(time.Minute); time.Now().Before(until); pause(t.Context(), 10*time.Millisecond) {
			if h, err := b.probe(t, ports.Queue); err == nil {
				b.forgot(h)
			}
		}
		if made := len(f.seats()); made < 5 || made > 15 {
			t.Errorf("%d bootstraps in a minute", made)
		}
	})
}

func TestAnAssignmentThatIsMadeAgainIsBootstrappedAgain(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
		})
		synctest.Wait()
		s.turn(func(is *ports.Beacons) {
			is.Assigned[ports.Queue] = ports.Assignment{BeaconID: "db", IDBeaconConnection: 1, AssignedAt: "later"}
		})
		pause(t.Context(), time.Minute)
		if made := f.seats(); len(made) != 2 {
			t.Errorf("bootstraps of %v", made)
		}
	})
}

func TestAnAssignmentThatIsMadeAgainIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		f.fails = 20
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
		})
		pause(t.Context(), time.Minute+time.Second) // the pauses are long by now
		f.mu.Lock()
		f.fails = 0
		f.mu.Unlock()
		s.turn(func(is *ports.Beacons) {
			is.Assigned[ports.Queue] = ports.Assignment{BeaconID: "db", IDBeaconConnection: 1, AssignedAt: "later"}
		})
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); err != nil {
			t.Errorf("%v", err)
		}
	})
}

func TestAFamilyThatJoinsAnotherDoesNotDisturbIt(t *testing.T) {
	t.Parallel()
	bound(t, func(t *testing.T, s *scene, b *binder, f *fitter) {
		s.turn(func(is *ports.Beacons) {
			is.List = []ports.Beacon{databeacon("db", 1)}
			assign(ports.Queue, "db", 1)(is)
		})
		before, err := b.probe(t, ports.Queue)
		if err != nil {
			t.Fatal(err)
		}
		s.turn(func(is *ports.Beacons) {
			is.Assigned[ports.Manifest] = ports.Assignment{BeaconID: "db", IDBeaconConnection: 1, AssignedAt: "later"}
		})
		synctest.Wait()
		after, err := b.probe(t, ports.Queue)
		if err != nil || after != before || len(f.seats()) != 1 {
			t.Errorf("%v, bootstraps of %v", err, f.seats())
		}
	})
}

func TestNobodyIsBoundWhileTheMeshSaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancel(t.Context())
		var work sync.WaitGroup
		b := newBinder(life, &work, deaf{}, nil)
		work.Go(b.watch)
		synctest.Wait()
		if _, err := b.probe(t, ports.Queue); ports.CodeOf(err) != ports.Unavailable || !strings.Contains(err.Error(), "no line") {
			t.Errorf("%v", err)
		}
		end()
		work.Wait()
	})
}

type deaf struct{}

func (deaf) Watch(context.Context, uint64) (ports.Beacons, error) {
	return ports.Beacons{}, errors.New("no line")
}

func (deaf) Dispatch(context.Context, ports.Work) (ports.WorkAnswer, error) {
	return ports.WorkAnswer{}, errors.New("no line")
}
