package mesh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

var errTooLong = ports.Errorf(ports.Deadline, "", "late")

// lingers gives a beacon a work over its socket whose caller gives up.
func (f *floor) lingers(beacon string) *work {
	f.t.Helper()
	w := f.dispatch(about(beacon, ports.ClassLive))
	f.sendAll()
	f.giveUp(w, errTooLong, f.now)
	f.settle()
	if w.state != lingering {
		f.t.Fatalf("the work is %s", stateNames[w.state])
	}
	return w
}

func (f *floor) wait(d time.Duration) {
	f.now = f.now.Add(d)
	f.pass(f.now)
	f.settle()
}

func TestABusyBeaconIsPushedNothingForAsLongAsItsSocketLives(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	first := f.lingers("b")
	next := f.dispatch(about("b", ports.ClassLive))
	for range 100 {
		f.wait(grace)
	}
	if next.state != waiting {
		t.Fatalf("while the first is underway, the next is %s", stateNames[next.state])
	}
	f.join("other", 2, 8, []string{"Shell"}, 1)
	if w := f.dispatch(about("", ports.ClassLive)); w.state != handed || w.berth.name != "other" {
		t.Error("work for anybody does not go to another one")
	}
	if got := f.report(first.Hash, "b", ports.WorkAnswer{}, f.now); got != late || next.state != handed {
		t.Errorf("after the report, which is %v, the next is %s", got, stateNames[next.state])
	}
}

func TestASlotComesBackAWhileAfterItsConnectionWasLost(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]func(f *floor){
		"broken":           func(f *floor) { f.broke("b", 7, f.now) },
		"silent":           func(f *floor) { f.silent("b", f.now) },
		"registered again": func(*floor) {},
	} {
		f := newFloor(t)
		f.join("b", 1, 7, []string{"Shell"}, 1)
		f.lingers("b")
		f.wait(time.Hour)
		lost(f)
		f.replaced("b", 2, f.now)
		f.join("b", 2, 8, []string{"Shell"}, 1)
		next := f.dispatch(about("b", ports.ClassLive))
		f.wait(grace - 1)
		if next.state != waiting {
			t.Errorf("%s: within the grace the next is %s", name, stateNames[next.state])
		}
		f.wait(1)
		if next.state != handed {
			t.Errorf("%s: after it the next is %s", name, stateNames[next.state])
		}
	}
}

// A beacon that reconnected in the midst of a work drops what it is pushed, and never reports that: it must not be taken for
// busy with it for a day.
func TestABeaconThatReconnectedWhileItWasBusyIsNotTakenForBusyLongerThanItIs(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	first := f.lingers("b")
	f.broke("b", 7, f.now)
	f.replaced("b", 2, f.now)
	f.join("b", 2, 8, []string{"Shell"}, 1)
	f.wait(grace)
	f.lingers("b") // dropped
	third := f.dispatch(about("b", ports.ClassLive))
	f.wait(grace)
	if third.state != handed {
		t.Fatalf("the third is %s", stateNames[third.state])
	}
	if f.report(first.Hash, "b", ports.WorkAnswer{}, f.now) != late {
		t.Error("the report of the first is not late")
	}
	f.sendAll()
	if f.report(third.Hash, "b", ports.WorkAnswer{}, f.now) != completed {
		t.Error("the report of the third does not count")
	}
	f.lingers("b") // it had room for the third, and so for this one
	last := f.dispatch(about("b", ports.ClassLive))
	f.wait(time.Hour)
	if last.state != waiting {
		t.Errorf("the last is %s", stateNames[last.state])
	}
}

func TestAPollSaysThatASlotIsFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		slots, held int
		after       time.Duration
		want        bool
	}{
		"of all that are taken":                   {2, 2, grace, true},
		"of none that is taken":                   {2, 1, grace, true},
		"with a poll still under way":             {2, 2, grace - 1, false},
		"of more than the hub would give it work": {9, 8, grace, false},
	} {
		f := newFloor(t)
		f.limits.Slots = 8
		f.join("b", 1, 0, []string{"Shell"}, c.slots)
		for range c.held {
			w := f.dispatch(about("b", ports.ClassLive))
			f.poll("b", f.now)
			f.giveUp(w, errTooLong, f.now)
		}
		next := f.dispatch(about("b", ports.ClassLive))
		f.wait(c.after)
		if got := f.poll("b", f.now) == next; got != c.want {
			t.Errorf("%s: it got work: %v", name, got)
		}
	}
}

func TestAPollThatLostItsAnswerGivesTheSlotBack(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 0, []string{"Shell"}, 1)
	lost, next := f.dispatch(about("b", ports.ClassLive)), f.dispatch(about("b", ports.ClassLive))
	if f.poll("b", f.now) != lost {
		t.Fatal("it got another one")
	}
	f.wait(time.Minute)
	if f.poll("b", f.now) != next || lost.state != sent {
		t.Fatalf("the first is %s, the next %s", stateNames[lost.state], stateNames[next.state])
	}
	f.wait(grace) // a report that the poll has overtaken would be here
	if lost.state != done || ports.CodeOf(lost.answer.err) != ports.BackendGone || f.answered[lost] != 1 {
		t.Errorf("in the end it is %s, %v", stateNames[lost.state], lost.answer.err)
	}
}

// A beacon that was killed comes back with nothing in hand; its next report shows that.
func TestWhoWaitsForAWorkOfAKilledBeaconIsToldSoonAfterItWorksAgain(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	w := about("b", ports.ClassLive)
	w.patient = true
	lost := f.dispatch(w)
	f.sendAll()
	f.broke("b", 7, f.now)
	f.silent("b", f.now)
	f.wait(time.Second)
	f.join("b", 2, 8, []string{"Shell"}, 1)
	f.wait(usual.Silence)
	if lost.state != sent {
		t.Fatal("the beacon may be at it all the same, and it is ended")
	}
	next := f.dispatch(about("b", ports.ClassLive))
	f.sendAll()
	f.report(next.Hash, "b", ports.WorkAnswer{}, f.now)
	f.wait(grace)
	if lost.state != done || ports.CodeOf(lost.answer.err) != ports.BackendGone {
		t.Errorf("it is %s, %v", stateNames[lost.state], lost.answer.err)
	}
}

func TestProgressGivesALostConnectionMoreTime(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	w := f.lingers("b")
	f.broke("b", 7, f.now)
	for range 5 {
		f.wait(grace - 1)
		if _, known := f.progress(w.Hash, "", nil, f.now); known {
			t.Error("somebody waits for it")
		}
	}
	if w.state != lingering {
		t.Fatalf("it is %s", stateNames[w.state])
	}
	f.wait(grace)
	if w.state != done {
		t.Errorf("in the end it is %s", stateNames[w.state])
	}
}

// Two beacons that behave as stock clients do, one with a socket and one that polls: whatever callers do and however long things
// take, neither is given more than it takes as long as its connection lasts, and neither stays idle.
func TestWhateverCallersDoABeaconIsNeverGivenMoreThanItTakes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f := &floor{works: newWorks(Limits{}.withUsual(), usual), now: noon, answered: map[*work]int{}}
		slots := rapid.IntRange(1, 3).Draw(r, "slots")
		f.join("socket", 1, 1, []string{"x"}, slots)
		f.join("poller", 2, 0, []string{"x"}, slots)
		active := map[string][]*work{}
		var all []*work
		name := rapid.SampledFrom([]string{"socket", "poller"})
		take := func(name string, w *work) {
			if active[name] = append(active[name], w); len(active[name]) > slots {
				r.Fatalf("%s has %d works", name, len(active[name]))
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"enqueue": func(r *rapid.T) {
				w := &work{Work: ports.Work{Beacon: rapid.SampledFrom([]string{"", "socket", "poller"}).Draw(r, "to"), Capability: "x"}, patient: rapid.Bool().Draw(r, "patient")}
				if f.enqueue(w, f.now) == nil {
					all = append(all, w)
				}
			},
			"poll": func(*rapid.T) {
				if len(active["poller"]) < slots {
					if w := f.poll("poller", f.now); w != nil {
						take("poller", w)
					}
				}
			},
			"report": func(r *rapid.T) {
				n := name.Draw(r, "who")
				if list := active[n]; len(list) > 0 {
					i := rapid.IntRange(0, len(list)-1).Draw(r, "which")
					active[n] = append(list[:i:i], list[i+1:]...)
					f.report(list[i].Hash, rapid.SampledFrom([]string{"", n}).Draw(r, "from"), ports.WorkAnswer{}, f.now)
				}
			},
			"give up": func(r *rapid.T) {
				if len(all) > 0 {
					f.giveUp(all[rapid.IntRange(0, len(all)-1).Draw(r, "work")], errTooLong, f.now)
				}
			},
			"time": func(r *rapid.T) {
				f.now = f.now.Add(time.Duration(rapid.IntRange(1, 300).Draw(r, "seconds")) * time.Second)
				f.pass(f.now)
			},
			"": func(r *rapid.T) {
				f.settle()
				for _, w := range f.pushed {
					if f.send(w, f.now) {
						take("socket", w)
					}
				}
				f.pushed = nil
				f.settle()
				if b := f.berths["socket"]; len(b.held) != len(active["socket"]) || f.next(b) != nil {
					r.Fatalf("the socket is at %d works and is said to be at %d", len(active["socket"]), len(b.held))
				}
			},
		})
	})
}

func TestACallerIsToldThatTheBeaconIsStillBusyWithEarlierWork(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Timing: Timing{Grace: 50 * time.Millisecond}})
	b := s.beacon("worker", 1, "Shell")
	if r := <-s.later(within(t, 100*time.Millisecond), shell("worker")); ports.CodeOf(r.err) != ports.Deadline || !strings.Contains(r.err.Error(), "unknown") {
		t.Errorf("the first: %v", r.err)
	}
	first, _ := b.work()
	s.hub.tick()
	for _, to := range []string{"worker", ""} {
		if r := <-s.later(within(t, 200*time.Millisecond), shell(to)); ports.CodeOf(r.err) != ports.Deadline || !strings.Contains(r.err.Error(), "still busy with 1 earlier") {
			t.Errorf("while it is busy, to %q: %v", to, r.err)
		}
		s.hub.tick()
	}
	record, status := s.call("GET", "/Beacon/"+b.id, nil), s.call("GET", "/status", nil)
	if record.body["LingeringWorkItems"] != 1.0 || status.body["LingeringWorkItems"] != 1.0 || record.body["Status"] != "Busy" || fmt.Sprint(record.body["CurrentWorkItems"]) != "["+first+"]" {
		t.Errorf("it is shown as %s, and %s", record.text, status.text)
	}
	got := s.later(within(t, testPatience), shell("worker"))
	b.complete(first, map[string]any{})
	hash, _ := b.work() // and not one of those in between
	b.complete(hash, map[string]any{})
	if r := <-got; r.err != nil || r.answer.WorkItemHash != hash {
		t.Errorf("after it: %+v", r)
	}
	if n := s.hub.Status().Lingering; n != 0 {
		t.Errorf("%d linger", n)
	}
}
