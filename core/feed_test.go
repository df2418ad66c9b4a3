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

// swap does something to the disk of a mirror while its process is down.
func (f *feed) swap(m *mirror, s *feedStep) {
	if m.noPosition && s.What != "backup" {
		return // nobody could tell
	}
	back := pauses[3+s.M%6]
	switch s.What {
	case "backup":
		f.old[m.name] = m.look()
		return
	case "older":
		if f.old[m.name] == nil {
			return
		}
	}
	m.change(func(m *mirror) { m.back = back })
	m.kill(func(d *mirrorDisk) *mirrorDisk {
		switch {
		case s.What == "older":
			return f.old[m.name].copied()
		case s.M%2 == 0:
			return newMirrorDisk(d.id) // emptied
		}
		return newMirrorDisk(d.id + "'") // made anew
	})
	if s.What == "wipe" {
		delete(f.old, m.name)
	}
}

func (f *feed) localStep(s *feedStep) {
	switch s.What {
	case "local dies":
		f.store.mu.Lock()
		f.store.back = pauses[3+s.M%6]
		f.store.mu.Unlock()
		f.store.kill(nil)
	case "local suffers":
		left := 1 + s.M%2
		what := []fate{{kind: loses}, {after: pauses[s.M]}, {kind: dies}, {after: 300 * time.Millisecond}}[s.N%4]
		f.store.suffers(func(*ports.CommitBatch) fate {
			if left == 0 {
				return fate{}
			}
			left--
			return what
		})
	case "local backup":
		f.local = &backup{disk: f.store.look(), at: time.Now()}
	case "local older":
		// The journal must still have what the copy lacks.
		if f.plan.Shared || f.local == nil || time.Since(f.local.at) > 5*time.Minute {
			return
		}
		f.store.mu.Lock()
		f.store.back = pauses[3+s.M%6]
		f.store.mu.Unlock()
		f.store.kill(func(*disk) *disk {
			return f.caughtUp(f.local.disk)
		})
	}
}

// caughtUp is a copy of a disk to which the other host has brought again what the copy lacks: it has a journal too.
func (f *feed) caughtUp(d *disk) *disk {
	d = d.copied()
	done := map[ports.Family]uint64{}
	for _, w := range f.foreign {
		if done[w.family]++; done[w.family] > d.others[w.family][otherHost].Seq {
			d.writesAs(otherHost, w.entries)
		}
	}
	return d
}

// dataStep makes a backup of the whole host, its local store included, or goes back to it: what came since never was, but for
// the followers.
func (f *feed) dataStep(s *feedStep) {
	if s.What == "data backup" {
		f.in(0)
		f.data = &backup{f.store.look(), f.state.copied(), f.copiedJournals(), time.Now()}
		return
	}
	forgetful := slices.ContainsFunc(f.plan.Followers, func(one feedFollower) bool { return one.NoPosition })
	if f.plan.Shared || forgetful || f.data == nil {
		return // nobody could tell
	}
	f.end()
	f.in(doubtFor + time.Second) // a restore takes longer than a Put is on its way
	if torn := f.torn(); !torn {
		f.restore()
	} else {
		for _, j := range f.journals {
			j.reopen(0)
		}
	}
	f.begin()
	synctest.Wait()
}

// torn says whether a follower has records of this host that its position does not tell of: a host that is restored cannot
// know of them.
func (f *feed) torn() bool {
	for _, m := range f.mirrors {
		d := m.look()
		for at, change := range d.shown {
			if change.Host == f.state.who.ID && change.Seq > d.positions[at.kind.Family()].Seqs[change.Host] {
				return true
			}
		}
	}
	return false
}

func (f *feed) restore() {
	f.state, f.journals = f.data.state.copied(), map[ports.Family]*memoryJournal{}
	for name, j := range f.data.journals {
		f.journals[name] = j.copied()
		f.journals[name].reopen(0)
	}
	f.store.kill(func(d *disk) *disk {
		for name, j := range f.journals {
			head := j.Bounds().Head
			d.annals.undo(name, f.state.who.ID, head)
			for _, key := range append(slices.Clone(feedKeys), otherKeys...) {
				if f.last[string(name)+key] > head {
					delete(f.last, string(name)+key)
				}
			}
		}
		return f.caughtUp(f.data.disk)
	})
	clear(f.seen)
	f.local = nil
}

func (f *feed) copiedJournals() map[ports.Family]*memoryJournal {
	journals := map[ports.Family]*memoryJournal{}
	for name, j := range f.journals {
		journals[name] = j.copied()
	}
	return journals
}

// breaksDown lets the host end in the middle of whatever it does: what it still does is not remembered.
func (f *feed) breaksDown() {
	synctest.Wait()
	state, journals := f.state.copied(), f.copiedJournals()
	f.end()
	f.state, f.journals = state, journals
	for _, j := range f.journals {
		j.reopen(0)
	}
	f.begin()
	synctest.Wait()
}

func (f *feed) cure(m *mirror) {
	m.change(func(m *mirror) {
		m.fate, m.mute, m.probe, m.stale, m.delays, m.back = nil, false, nil, false, 0, 20*time.Millisecond
	})
}

// heal makes everybody well, waits until all is settled, and compares.
func (f *feed) heal() {
	f.store.suffers(nil)
	for _, m := range f.mirrors {
		f.cure(m)
	}
	f.in(time.Minute)
	if !f.until(20*time.Minute, f.settled) {
		for _, m := range f.mirrors {
			f.t.Errorf("%s: not settled: %+v", f.moment, f.backend(m.name).Followers)
		}
		return
	}
	for _, m := range f.mirrors {
		f.equal(m.name)
		for _, hole := range f.holes(m.name) {
			f.t.Errorf("%s: %s", f.moment, hole)
		}
	}
	for n := range 20 {
		f.read(n, n)
	}
	for _, key := range feedKeys {
		if a := f.host.Item(f.t.Context(), key); a.Situation == Done && a.Backend != f.plan.Route[0] {
			f.t.Errorf("item %s is answered by %s, not %s", key, a.Backend, f.plan.Route[0])
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

// read reads something at random.
func (f *feed) read(n, m int) {
	keys := append(slices.Clone(feedKeys), otherKeys...)
	key := keys[m%len(keys)]
	began := time.Now()
	switch n % 6 {
	case 0:
		f.sees(ports.KindItem, key, func() Answer { return f.host.Item(f.t.Context(), key) })
	case 1:
		f.sees(ports.KindManifest, key, func() Answer { return f.host.Manifest(f.t.Context(), key) })
	case 2:
		f.lists(ports.KindEvent, key, func(c *ports.Cursor) Answer {
			return f.host.Events(f.t.Context(), ports.EventQuery{Key: key, After: c, Limit: 1 + m, Bodies: true})
		})
	case 3:
		f.lists(ports.KindAttempt, key, func(c *ports.Cursor) Answer {
			return f.host.Attempts(f.t.Context(), ports.AttemptQuery{Key: key, After: c, Limit: 1 + m})
		})
	case 4:
		f.lists(ports.KindItem, "", func(c *ports.Cursor) Answer {
			return f.host.Items(f.t.Context(), ports.ItemQuery{After: c, Limit: 1 + m, Desc: m%2 == 0, Bodies: true})
		})
	case 5:
		f.lists(ports.KindManifest, "", func(*ports.Cursor) Answer {
			return f.host.Manifests(f.t.Context(), ports.ManifestQuery{Limit: 500, Bodies: true})
		})
	}
	if took := time.Since(began); took > 40*patience {
		f.t.Errorf("%s: reads took %s", f.moment, took)
	}
}

// timed asks, and holds the answer to its time.
func (f *feed) timed(ask func() Answer) Answer {
	began := time.Now()
	a := ask()
	if took := time.Since(began); took > patience {
		f.t.Errorf("%s: a read took %s", f.moment, took)
	}
	return a
}

// sees reads one record and compares it with what it was when the read began.
func (f *feed) sees(k ports.Kind, key string, ask func() Answer) {
	before := f.before(k.Family(), key)
	a := f.timed(ask)
	if a.Stale || a.Incomplete || a.Situation == Unavailable {
		return
	}
	f.decided(before)
	if a.Situation == NotFound {
		f.fits(before, place{kind: k, key: key}, a.Backend, nil)
		return
	}
	f.fits(before, place{kind: k, key: key}, a.Backend, a.Value)
}

// outlook is what was acknowledged when a read began.
type outlook struct {
	family ports.Family
	head   uint64 // of the journal
	need   uint64 // what the read must reflect at least
}

func (f *feed) before(family ports.Family, key string) outlook {
	o := outlook{family: family, head: f.journals[family].Bounds().Head}
	if o.need = o.head; key != "" {
		o.need = f.last[string(family)+key]
	}
	return o
}

// decided checks that the local store has decided what a read reflects.
func (f *feed) decided(before outlook) {
	f.store.mu.Lock()
	reach := f.store.disk.annals.reach[before.family]
	f.store.mu.Unlock()
	if before.need > reach {
		f.t.Errorf("%s: a read is answered as fresh although %d is not decided: the local store never was beyond %d", f.moment, before.need, reach)
	}
}

// fits checks that what was read of a place, nil for nothing, is the state that it had when the read began, or a later one, and
// that the backend has not shown a later one before.
func (f *feed) fits(before outlook, at place, backend string, body []byte) {
	past := f.store.ever(at)
	if len(past) == 0 && f.store.void(at) {
		return // it never was, but for a backend that has it still
	}
	least := -1
	for i, v := range past {
		if v.change.Host == f.state.who.ID && v.change.Seq <= before.head {
			least = i
		}
	}
	first, last := -1, -1
	for i := max(least, 0); i < len(past); i++ {
		v := past[i]
		shows := !v.gone && body != nil && string(shown(ports.Row{Kind: at.kind, Body: []byte(v.body), First: v.first})) == string(body)
		if v.gone && body == nil || shows {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 && body == nil && least < 0 {
		return // nobody says that it must be there
	}
	if first < 0 {
		f.t.Errorf("%s: %s gives %v as %s when at least state %d of %d had to be read:%s", f.moment, backend, at, body, least, len(past), listed(past))
		return
	}
	mark := fmt.Sprint(backend, at)
	if seen, known := f.seen[mark]; known && last < seen {
		f.t.Errorf("%s: %s shows state %d of %v after state %d", f.moment, backend, last, at, seen)
	}
	f.seen[mark] = max(f.seen[mark], first)
}

func listed(past []version) (text string) {
	for i, v := range past {
		text += fmt.Sprintf("\n%d: %s of %.8s %d", i, v.body, v.change.Host, v.change.Seq)
	}
	return text
}

// lists reads a list to its end, and compares each record with what it was when the read began.
func (f *feed) lists(k ports.Kind, key string, ask func(*ports.Cursor) Answer) {
	before := f.before(k.Family(), key)
	got := map[place]string{}
	backend := map[place]string{}
	by := ""
	for cursor, n := (*ports.Cursor)(nil), 0; n == 0 || cursor != nil; n++ {
		a := f.timed(func() Answer { return ask(cursor) })
		if a.Stale || a.Incomplete || a.Situation != Done {
			return
		}
		f.decided(before)
		by = a.Backend
		err := ports.ScanItems(a.Value, func(item []byte) {
			at := placeOfBody(k, item)
			if _, twice := got[at]; twice {
				f.t.Errorf("%s: %v stands twice in a list of %s", f.moment, at, a.Backend)
			}
			got[at], backend[at] = string(item), a.Backend
		})
		if err != nil {
			f.t.Fatal(err)
		}
		if cursor, err = ports.ParseCursor(a.Cursor); err != nil {
			f.t.Fatal(err)
		}
		if cursor != nil && n%4 == 3 {
			f.in(5 * time.Millisecond)
		}
	}
	for at, body := range got {
		f.fits(before, at, backend[at], []byte(body))
	}
	for _, at := range f.store.places(k, key) {
		if _, listed := got[at]; !listed {
			f.fits(before, at, by, nil)
		}
	}
}

// places gives where records of a kind and key ever were.
func (m *memory) places(k ports.Kind, key string) (list []place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, past := range m.disk.annals.past {
		if at.kind == k && len(past) > 0 && (key == "" || past[0].key == key) {
			list = append(list, at)
		}
	}
	return list
}

// placeOfBody finds the place of a record as a caller sees it.
func placeOfBody(k ports.Kind, body []byte) place {
	table := ports.TableOf(k)
	r, err := ports.ParseRecord(table, body)
	if err != nil {
		return place{kind: k, key: err.Error()}
	}
	number, _ := strconv.ParseInt(string(r.Get("AttemptNumber")), 10, 64) // of an attempt
	return placeOf(k, r.Text(table.Key), r.Text("EventGUID"), max(number, 0))
}
