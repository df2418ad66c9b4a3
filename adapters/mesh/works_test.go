package mesh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

const grace = 10 * time.Second

var usual = Timing{Grace: grace}.withUsual()

// floor is a state machine with what a test did to it.
type floor struct {
	t *testing.T
	*works
	now      time.Time
	answered map[*work]int
	pushed   []*work
}

func newFloor(t *testing.T) *floor {
	return &floor{t: t, works: newWorks(Limits{}.withUsual(), usual), now: noon, answered: map[*work]int{}}
}

// enqueue takes a work in, as the hub does between two records of it.
func (f *floor) enqueue(w *work, now time.Time) error {
	if err := f.admit(w, now); err != nil {
		return err
	}
	f.enter(w)
	return nil
}

// join connects a beacon now.
func (f *floor) join(name string, session, conn uint64, capabilities []string, slots int) {
	f.works.join(name, session, conn, capabilities, slots, f.now)
}

// settle takes in the effects of a step.
func (f *floor) settle() {
	e := f.take()
	f.pushed = append(f.pushed, e.push...)
	for _, w := range e.answered {
		f.answered[w]++
	}
}

func (f *floor) dispatch(w work) *work {
	f.t.Helper()
	if err := f.enqueue(&w, f.now); err != nil {
		f.t.Fatal(err)
	}
	f.settle()
	return &w
}

// sendAll lets everything that was pushed go out.
func (f *floor) sendAll() {
	for _, w := range f.pushed {
		f.send(w, f.now)
	}
	f.pushed = nil
	f.settle()
}

func about(beacon string, class ports.WorkClass) work {
	return work{Work: ports.Work{Beacon: beacon, Capability: "Shell", Class: class}}
}

// A row of the table: a work in a state, something happens, and what becomes of it.
func TestAWorkEndsAsItsTableSays(t *testing.T) {
	t.Parallel()
	states := map[string]func(f *floor, w work) *work{
		"waiting": func(f *floor, w work) *work {
			f.join("b", 1, 0, []string{"Shell"}, 1) // a poller that does not poll
			return f.dispatch(w)
		},
		"handed": func(f *floor, w work) *work {
			f.join("b", 1, 7, []string{"Shell"}, 1)
			return f.dispatch(w)
		},
		"sent": func(f *floor, w work) *work {
			f.join("b", 1, 7, []string{"Shell"}, 1)
			made := f.dispatch(w)
			f.sendAll()
			return made
		},
		"lingering": func(f *floor, w work) *work {
			f.join("b", 1, 7, []string{"Shell"}, 1)
			made := f.dispatch(w)
			f.sendAll()
			f.giveUp(made, ports.Errorf(ports.Deadline, "", "late"), f.now)
			f.settle()
			return made
		},
	}
	events := map[string]func(f *floor, w *work){
		"report":  func(f *floor, w *work) { f.report(w.Hash, "b", ports.WorkAnswer{}, f.now) },
		"give up": func(f *floor, w *work) { f.giveUp(w, ports.Errorf(ports.Deadline, "", "late"), f.now) },
		"broke":   func(f *floor, w *work) { f.broke("b", 7, f.now) },
		"silent":  func(f *floor, w *work) { f.silent("b", f.now) },
		"leave":   func(f *floor, w *work) { f.leave("b", f.now) },
		"grace": func(f *floor, w *work) {
			f.now = f.now.Add(grace)
			f.pass(f.now)
		},
		"broke, and grace": func(f *floor, w *work) {
			f.broke("b", 7, f.now)
			f.now = f.now.Add(grace)
			f.pass(f.now)
		},
		"replaced, and grace": func(f *floor, w *work) {
			f.replaced("b", 2, f.now)
			f.now = f.now.Add(grace)
			f.pass(f.now)
		},
		"silent for long": func(f *floor, w *work) {
			f.silent("b", f.now)
			f.wait(usual.Silence)
		},
		"a day": func(f *floor, w *work) {
			f.now = f.now.Add(usual.Linger)
			f.pass(f.now)
		},
	}
	// in: patient or not, pool or addressed. out: state, code of the answer ("-": none, "ok": a report's), slots held.
	for _, row := range []struct{ in, state, event, out string }{
		{"", "waiting", "report", "waiting - 0"},
		{"", "waiting", "give up", "done deadline 0"},
		{"", "waiting", "broke", "waiting - 0"},
		{"", "waiting", "silent", "done unavailable 0"},
		{"patient", "waiting", "silent", "waiting - 0"},
		{"", "waiting", "leave", "done unavailable 0"},
		{"patient", "waiting", "leave", "done unavailable 0"},
		{"pool", "waiting", "silent", "waiting - 0"},
		{"", "handed", "report", "handed - 1"},
		{"", "handed", "give up", "done deadline 0"},
		{"", "handed", "broke", "waiting - 0"},
		{"pool", "handed", "broke", "waiting - 0"},
		{"", "handed", "silent", "done unavailable 0"},
		{"patient", "handed", "silent", "waiting - 0"},
		{"pool", "handed", "leave", "waiting - 0"},
		{"", "handed", "leave", "done unavailable 0"},
		{"", "sent", "report", "done ok 0"},
		{"", "sent", "give up", "lingering deadline 1"},
		{"", "sent", "broke", "lingering backend_gone 1"},
		{"patient", "sent", "broke", "sent - 1"},
		{"", "sent", "silent", "lingering backend_gone 1"},
		{"patient", "sent", "silent", "sent - 1"},
		{"", "sent", "leave", "done backend_gone 0"},
		{"patient", "sent", "leave", "done backend_gone 0"},
		{"", "sent", "grace", "sent - 1"},
		{"", "lingering", "report", "done deadline 0"},
		{"", "lingering", "give up", "lingering deadline 1"},
		{"", "lingering", "broke", "lingering deadline 1"},
		{"", "lingering", "leave", "done deadline 0"},
		{"", "lingering", "grace", "lingering deadline 1"},
		{"", "lingering", "broke, and grace", "done deadline 0"},
		{"", "lingering", "replaced, and grace", "done deadline 0"},
		{"", "lingering", "a day", "done deadline 0"},
		{"", "sent", "a day", "sent - 1"},
		{"patient", "sent", "broke, and grace", "sent - 0"},
		{"patient", "sent", "silent for long", "done backend_gone 0"},
		{"patient", "waiting", "silent for long", "waiting - 0"},
	} {
		t.Run(strings.TrimSpace(row.in+" "+row.state+" "+row.event), func(t *testing.T) {
			t.Parallel()
			f := newFloor(t)
			w := about("b", ports.ClassLive)
			w.patient = row.in == "patient"
			if row.in == "pool" {
				w.Beacon = ""
			}
			made := states[row.state](f, w)
			b := f.berths["b"]
			events[row.event](f, made)
			f.settle()
			said := "-"
			if n := f.answered[made]; n > 1 {
				t.Fatalf("answered %d times", n)
			} else if n == 1 {
				if said = string(ports.CodeOf(made.answer.err)); said == "" {
					said = "ok"
				}
			}
			if got := fmt.Sprint(stateNames[made.state], " ", said, " ", len(b.held)); got != row.out {
				t.Errorf("got %q, want %q", got, row.out)
			}
		})
	}
}

var stateNames = map[state]string{waiting: "waiting", handed: "handed", sent: "sent", lingering: "lingering", done: "done"}

func TestAProbeGoesFirstAndCatchingUpNeverTakesTheLastSlot(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 0, []string{"Shell"}, 2)
	var catchUp, live, read, probe *work
	catchUp = f.dispatch(about("b", ports.ClassCatchUp))
	second := f.dispatch(about("b", ports.ClassCatchUp))
	live, read = f.dispatch(about("b", ports.ClassLive)), f.dispatch(about("b", ports.ClassRead))
	probe = f.dispatch(about("b", ports.ClassProbe))
	for _, want := range []struct {
		name  string
		work  *work
		after *work
	}{{"probe", probe, nil}, {"read", read, nil}, {"live", live, read}, {"the first catching up", catchUp, probe}} {
		if want.after != nil {
			f.report(want.after.Hash, "b", ports.WorkAnswer{}, f.now)
		}
		if want.work == catchUp {
			if got := f.poll("b", f.now); got != nil {
				t.Fatalf("%v took the last slot", got.Class)
			}
			f.report(live.Hash, "b", ports.WorkAnswer{}, f.now)
		}
		if got := f.poll("b", f.now); got != want.work {
			t.Fatalf("got %+v, want the %s", got, want.name)
		}
	}
	if got := f.poll("b", f.now); got != nil || second.state != waiting {
		t.Fatal("catching up took the last slot")
	}
}

func TestABeaconWithOneSlotCatchesUpToo(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 0, []string{"Shell"}, 1)
	w := f.dispatch(about("b", ports.ClassCatchUp))
	if f.poll("b", f.now) != w {
		t.Fatal("it got nothing")
	}
}

func TestALateReportIsToldFromOneAboutNothing(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	f.join("other", 2, 8, []string{"Shell"}, 1)
	w := f.dispatch(about("b", ports.ClassLive))
	f.sendAll()
	if got := f.report(w.Hash, "other", ports.WorkAnswer{}, f.now); got != unknown {
		t.Errorf("another beacon's report: %v", got)
	}
	if got := f.report(w.Hash, "", ports.WorkAnswer{}, f.now); got != completed {
		t.Errorf("the report: %v", got)
	}
	if got := f.report(w.Hash, "b", ports.WorkAnswer{Failure: "again"}, f.now); got != late || w.answer.Failure != "" {
		t.Errorf("a second report: %v", got)
	}
	if got := f.report("wi-never", "b", ports.WorkAnswer{}, f.now); got != unknown {
		t.Errorf("a report about nothing: %v", got)
	}
}

func TestWhatAWorkMayNotBeIsRefused(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.limits.WaitingPerBeacon, f.limits.Waiting, f.limits.WorkBytes = 2, 3, 100
	f.join("b", 1, 0, []string{"Shell"}, 1)
	f.dispatch(about("b", ports.ClassLive))
	large := about("b", ports.ClassLive)
	large.Settings = make([]byte, 101)
	for _, c := range []struct {
		name string
		work work
		want ports.Code
	}{
		{"an unknown beacon", about("nobody", ports.ClassLive), ports.Unavailable},
		{"a capability that it does not offer", work{Work: ports.Work{Beacon: "b", Capability: "Other"}}, ports.Invalid},
		{"a capability that nobody offers", work{Work: ports.Work{Capability: "Other"}}, ports.Unavailable},
		{"settings that are too many beside others", large, ports.Full},
		{"one that fits", about("b", ports.ClassLive), ""},
		{"one too many for the beacon", about("b", ports.ClassLive), ports.Full},
		{"the last that fits in all", about("", ports.ClassLive), ""},
		{"one too many in all", about("", ports.ClassLive), ports.Full},
	} {
		if got := ports.CodeOf(f.enqueue(&c.work, f.now)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWorkOfABrokenConnectionGoesToAnotherBeaconBeforeItWentOut(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("a", 1, 7, []string{"Shell"}, 1)
	w := f.dispatch(about("", ports.ClassLive))
	f.join("b", 2, 8, []string{"Shell"}, 1)
	f.broke("a", 7, f.now)
	f.settle()
	if w.state != handed || w.berth.name != "b" || len(f.berths["a"].held) != 0 {
		t.Fatalf("it is %s", stateNames[w.state])
	}
	f.sendAll()
	if f.report(w.Hash, "b", ports.WorkAnswer{}, f.now) != completed {
		t.Fatal("it did not end")
	}
}

func TestAPatientWorkGoesOnWithoutItsSlotUntilItIsReported(t *testing.T) {
	t.Parallel()
	f := newFloor(t)
	f.join("b", 1, 7, []string{"Shell"}, 1)
	w := about("b", ports.ClassLive)
	w.patient = true
	made := f.dispatch(w)
	f.sendAll()
	f.silent("b", f.now)
	f.join("b", 2, 8, []string{"Shell"}, 1)
	next := f.dispatch(about("b", ports.ClassLive))
	if next.state != waiting {
		t.Fatal("the slot was given away at once")
	}
	f.pass(f.now.Add(grace))
	if next.state != handed || made.state != sent {
		t.Fatalf("the next is %s, the first %s", stateNames[next.state], stateNames[made.state])
	}
	if f.report(made.Hash, "b", ports.WorkAnswer{}, f.now) != completed || next.state != handed {
		t.Fatal("its report did not count")
	}
}

func TestAWorkForOneSessionIsNeverSentOverALaterOne(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		state  state
		former func(f *floor) // what happens to it before the beacon registers anew
	}{
		{"it waits for a slot", waiting, func(f *floor) { f.dispatch(about("b", ports.ClassLive)) }},
		{"it was handed to the socket", handed, func(*floor) {}},
	} {
		f := newFloor(t)
		f.join("b", 1, 7, []string{"Shell"}, 1)
		c.former(f)
		w := about("b", ports.ClassLive)
		w.Session, w.patient = 1, true
		made := f.dispatch(w)
		if made.state != c.state {
			t.Fatalf("%s: it is %s", c.name, stateNames[made.state])
		}
		f.replaced("b", 2, f.now)
		f.join("b", 2, 8, []string{"Shell"}, 5)
		f.settle()
		f.sendAll()
		if made.state != done || f.answered[made] != 1 || ports.CodeOf(made.answer.err) != ports.Unavailable {
			t.Errorf("%s: it is %s, answered %d times with %v", c.name, stateNames[made.state], f.answered[made], made.answer.err)
		}
		if err := f.enqueue(&w, f.now); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("%s: another one of the former session: %v", c.name, err)
		}
		w.Session = 2
		if err := f.enqueue(&w, f.now); err != nil {
			t.Errorf("%s: one of the present session: %v", c.name, err)
		}
	}
}
