package core

import (
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// THE test of the followers: whatever happens to whom and when, no read is older than what was acknowledged before it began
// unless it says so, no key of a follower goes back, no position is beyond a change that its store has not, and in the end
// every follower is equal to the local store.
func TestFollowersMissNothingAndNobodyReadsThePast(t *testing.T) {
	t.Parallel()
	for i := range rounds(50) {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			checkPlans(t)
		})
	}
}

func checkPlans(t *testing.T) {
	t.Helper()
	rapid.Check(t, func(r *rapid.T) {
		plan := rapid.OneOf(rapid.Custom(genPlan), rapid.Custom(genPlan), rapid.Custom(genPlan), rapid.Custom(genHurried), rapid.Custom(genRestored)).Draw(r, "plan")
		for i, s := range plan.Steps {
			r.Logf("%d: %s", i, s)
		}
		if found := plan.run(t, nil); len(found) > 0 {
			r.Fatal(found)
		}
	})
}

// witness is a testing.TB that keeps what it is told.
type witness struct {
	testing.TB
	mu    sync.Mutex
	found []string
}

// errWitnessed ends a scene.
var errWitnessed = fmt.Errorf("the witness has seen enough")

func (w *witness) Helper() {}

func (w *witness) Error(args ...any) { w.say(fmt.Sprint(args...)) }

func (w *witness) Errorf(format string, args ...any) { w.say(fmt.Sprintf(format, args...)) }

func (w *witness) Fatal(args ...any) {
	w.say(fmt.Sprint(args...))
	panic(errWitnessed)
}

func (w *witness) Fatalf(format string, args ...any) {
	w.say(fmt.Sprintf(format, args...))
	panic(errWitnessed)
}

func (w *witness) say(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = append(w.found, what+"\n")
}

func (w *witness) quiet() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.found) == 0
}

// feed is a run of a plan.
type feed struct {
	*stage
	plan    *feedPlan
	witness *witness
	last    map[string]uint64 // the last Seq of each key that was acknowledged, by family and key
	seen    map[string]int    // the newest state that each backend has shown of a place
	old     map[string]*mirrorDisk
	local   *backup
	data    *backup
	foreign []foreignWrite
	moment  string // the step that happens now
}

// backup is a copy of the local store's disk and of the data directory, and when it was made.
type backup struct {
	disk     *disk
	state    *memoryState
	journals map[ports.Family]*memoryJournal
	at       time.Time
}

// foreignWrite is what another host wrote under one Seq.
type foreignWrite struct {
	family  ports.Family
	entries []ports.Entry
}

const otherHost = "99999999-0000-0000-0000-000000000000"

// run carries a plan out and gives what was wrong. broken breaks something on purpose before every start of the host.
func (p *feedPlan) run(t *testing.T, broken func(s *stage)) []string {
	w := &witness{}
	synctest.Test(t, func(t *testing.T) {
		w.TB = t
		defer func() {
			if r := recover(); r != nil && r != any(errWitnessed) {
				panic(r)
			}
		}()
		f := &feed{stage: newStage(w), plan: p, witness: w, last: map[string]uint64{}, seen: map[string]int{}, old: map[string]*mirrorDisk{}}
		f.config.Ack, f.config.Route, f.revive = p.Ack, p.Route, true
		f.store.flaws.page = p.Page
		for i, one := range p.Followers {
			f.follows(mirrorName(i), func(m *mirror) {
				m.slots, m.noPosition, m.keyOnly, m.loose = one.Slots, one.NoPosition, one.KeyOnly, one.Loose
			})
		}
		f.made = broken
		f.begin()
		defer f.close()
		synctest.Wait()
		for i, step := range p.Steps {
			f.moment = fmt.Sprintf("step %d (%s %d %d)", i, step.What, step.N, step.M)
			f.step(&step)
			for _, m := range f.mirrors {
				for _, hole := range f.holes(m.name) {
					w.Errorf("%s: %s", f.moment, hole)
				}
			}
			if !w.quiet() {
				return
			}
		}
		f.moment = "in the end"
		f.heal()
	})
	return w.found
}

// the mirror that a step is about.
func (f *feed) one(n int) *mirror { return f.mirrors[n%len(f.mirrors)] }

func (f *feed) step(s *feedStep) {
	m := f.one(s.N)
	switch s.What {
	case "write":
		f.write(s)
	case "other":
		f.other(s)
	case "pass":
		f.in(pauses[s.M])
	case "read":
		f.read(s.N, s.M)
	case "read among writes":
		f.readAmongWrites(s)
	case "kill":
		m.change(func(m *mirror) { m.back = pauses[3+s.M%7] })
		m.kill(nil)
	case "slow":
		m.suffers(every(putFate{after: pauses[s.M]}))
	case "suffer":
		m.suffers(mirrorFate(s.N/2, s.M))
	case "cure":
		f.cure(m)
	case "mute":
		m.change(func(m *mirror) { m.mute = true })
	case "deaf":
		m.change(func(m *mirror) { m.stale, m.delays = s.M%2 == 0, pauses[3+s.M%6] })
	case "decline":
		m.change(func(m *mirror) {
			m.probe = ports.Errorf([]ports.Code{ports.Unavailable, ports.Unauthorized, ports.Full, ports.Invalid}[s.M%4], "mirror", "takes nothing")
		})
	case "backup", "older", "wipe":
		f.swap(m, s)
	case "twin":
		m.suffers(func(b *ports.Batch) putFate { return putFate{kind: putTwice, after: pauses[3+s.M%8]} })
	case "local dies", "local suffers", "local backup", "local older":
		f.localStep(s)
	case "data backup", "data older":
		f.dataStep(s)
	case "again":
		f.again()
	case "crash":
		f.breaksDown()
	case "retry":
		for _, family := range ports.Families {
			if _, err := f.host.RetryUnsettled(m.name, family, ""); err != nil && ports.CodeOf(err) != ports.NotFound {
				f.t.Errorf("%s: retry: %v", f.moment, err)
			}
		}
	case "resync":
		if err := f.host.Resync(m.name); err != nil {
			f.t.Errorf("%s: resync: %v", f.moment, err)
		}
	}
}

// write writes, and notes what was acknowledged.
func (f *feed) write(s *feedStep) {
	for i, a := range s.Acts {
		c := call(ports.Action(a.Action), "%s", a.Settings)
		c.Source.Import = a.Again
		began := time.Now()
		p := f.host.Begin(c)
		if (s.M+i)%3 == 0 {
			continue // its caller has gone
		}
		answer := p.Wait(f.t.Context())
		if took := time.Since(began); took > patience+100*time.Millisecond {
			f.t.Errorf("%s: a write took %s", f.moment, took)
		}
		if answer.Seq != 0 && p.family != nil && situations[answer.Situation].available {
			family := p.family.name
			for _, e := range f.journals[family].since(answer.Seq - 1) {
				if e.Seq == answer.Seq {
					f.last[string(family)+e.Key] = max(f.last[string(family)+e.Key], e.Seq)
				}
			}
		}
	}
}

// since gives the entries after a Seq.
func (j *memoryJournal) since(seq uint64) (list []ports.Entry) {
	j.change(func(j *memoryJournal) {
		i := slices.IndexFunc(j.entries, func(e ports.Entry) bool { return e.Seq > seq })
		if i >= 0 {
			list = slices.Clone(j.entries[i:])
		}
	})
	return list
}

// readAmongWrites reads while others write.
func (f *feed) readAmongWrites(s *feedStep) {
	var others sync.WaitGroup
	host, acts := f.host, s.Acts
	others.Go(func() {
		for _, a := range acts {
			<-time.After(pauses[2+s.M%5])
			c := call(ports.Action(a.Action), "%s", a.Settings)
			c.Source.Import = a.Again
			host.Begin(c)
		}
	})
	f.read(s.N, s.M)
	others.Wait()
}

// other has another host write, several records under one Seq.
func (f *feed) other(s *feedStep) {
	groups := map[ports.Family][]ports.Entry{}
	for _, a := range s.Acts {
		c := call(ports.Action(a.Action), "%s", a.Settings)
		c.Source.Import = a.Again
		checked, err := check(&c)
		if err != nil {
			continue
		}
		checked.stampGUID(&c.Source)
		e := checked.entry
		e.ReceivedMs = time.Now().UnixMilli()
		groups[e.Action.Family()] = append(groups[e.Action.Family()], e)
	}
	for _, family := range ports.Families {
		if entries := groups[family]; len(entries) > 0 {
			f.foreign = append(f.foreign, foreignWrite{family, entries})
			f.store.writesAs(otherHost, entries...)
		}
	}
}

// settled tries again whatever was refused, and says whether nothing is left to do.
func (f *feed) settled() bool {
	list, err := f.host.Asides()
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range list {
		if _, err := f.host.RetryAside(a.Family, a.Key); err != nil && ports.CodeOf(err) != ports.NotFound {
			f.t.Fatal(err)
		}
	}
	done := len(list) == 0
	for _, status := range f.host.Status().Families {
		done = done && status.Backlog == 0
	}
	for _, m := range f.mirrors {
		for _, family := range ports.Families {
			status := f.follower(m.name, family)
			if status.Unsettled+status.Discarded > 0 {
				if _, err := f.host.RetryUnsettled(m.name, family, ""); err != nil && ports.CodeOf(err) != ports.NotFound {
					f.t.Fatal(err)
				}
			}
			done = done && status.Phase == string(modeReady) && status.Behind == 0 && status.Unsettled+status.InDoubt == 0
		}
	}
	return done
}
