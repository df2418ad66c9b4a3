package mesh

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Whatever happens in whatever order: a work is answered at most once, exactly once in the end, no beacon has more than its
// slots, catching up leaves one, nothing that could go out waits, and no slot or queue is left behind.
func TestWhateverHappensEachWorkEndsOnceAndNoSlotIsLost(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f := &floor{works: newWorks(Limits{Slots: 8}.withUsual(), usual), now: noon, answered: map[*work]int{}}
		var all []*work
		var session uint64
		names := []string{"a", "b", "c"}
		capabilities := [][]string{{"x"}, {"y"}, {"x", "y"}, {}}
		pick := func() *work {
			if len(all) == 0 {
				return nil
			}
			return all[rapid.IntRange(0, len(all)-1).Draw(r, "work")]
		}
		name := rapid.SampledFrom(names)
		steps := map[string]func(*rapid.T){
			"join": func(r *rapid.T) {
				session++
				conn := session * uint64(rapid.IntRange(0, 1).Draw(r, "push"))
				f.join(name.Draw(r, "name"), session, conn, rapid.SampledFrom(capabilities).Draw(r, "offers"), rapid.IntRange(0, 4).Draw(r, "slots"))
			},
			"enqueue": func(r *rapid.T) {
				w := &work{Work: ports.Work{
					Beacon: rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(r, "to"), Capability: rapid.SampledFrom([]string{"x", "y"}).Draw(r, "capability"),
					Class: ports.WorkClass(rapid.IntRange(0, 3).Draw(r, "class")), Settings: []byte(`{}`),
				}, patient: rapid.Bool().Draw(r, "patient")}
				if b := f.berths[w.Beacon]; b != nil && rapid.Bool().Draw(r, "of this session") {
					w.Session = b.session
				}
				if f.enqueue(w, f.now) == nil {
					all = append(all, w)
				}
			},
			"poll": func(r *rapid.T) { f.poll(name.Draw(r, "name"), f.now) },
			"send": func(*rapid.T) { f.sendAll() },
			"report": func(r *rapid.T) {
				if w := pick(); w != nil {
					f.report(w.Hash, rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(r, "from"), ports.WorkAnswer{}, f.now)
				}
			},
			"give up": func(r *rapid.T) {
				if w := pick(); w != nil {
					f.giveUp(w, ports.Errorf(ports.Deadline, "", "late"), f.now)
				}
			},
			"broke": func(r *rapid.T) {
				f.broke(name.Draw(r, "name"), uint64(rapid.IntRange(0, int(session)).Draw(r, "conn")), f.now)
			},
			"silent": func(r *rapid.T) { f.silent(name.Draw(r, "name"), f.now) },
			"leave":  func(r *rapid.T) { f.leave(name.Draw(r, "name"), f.now) },
			"replaced": func(r *rapid.T) {
				n := name.Draw(r, "name")
				if b := f.berths[n]; b != nil { // as the hub does it: and joins again
					session++
					f.replaced(n, session, f.now)
					f.join(n, session, session*uint64(rapid.IntRange(0, 1).Draw(r, "push")), b.capabilities, b.slots)
				}
			},
			"time": func(r *rapid.T) {
				f.now = f.now.Add(time.Duration(rapid.IntRange(1, 20).Draw(r, "seconds")) * time.Second)
				f.pass(f.now)
			},
			"": func(r *rapid.T) {
				f.settle()
				if fault := f.fault(all); fault != "" {
					r.Fatal(fault)
				}
			},
		}
		r.Repeat(steps)
		for _, w := range all { // every caller's patience ends
			f.giveUp(w, ports.Errorf(ports.Deadline, "", "late"), f.now)
		}
		f.pass(f.now.Add(usual.Linger))
		for _, b := range f.berths {
			if n := b.lingering(); n > 0 {
				r.Fatalf("%d slots of %s are lost", n, b.name)
			}
		}
		for _, n := range names {
			f.leave(n, f.now)
		}
		f.settle()
		for _, w := range all {
			if f.answered[w] != 1 || w.state != done {
				r.Fatalf("%s was answered %d times and is %s", w.Hash, f.answered[w], stateNames[w.state])
			}
		}
		if len(f.live)+len(f.pool)+len(f.offers)+len(f.berths)+len(f.astray)+f.waiting != 0 || f.bytes != 0 {
			r.Fatalf("left behind: %d works, %d pools, %d offers, %d berths, %d waiting, %d bytes", len(f.live), len(f.pool), len(f.offers), len(f.berths), f.waiting, f.bytes)
		}
	})
}

// fault says what is wrong with the state; "" is nothing.
func (f *floor) fault(all []*work) string {
	waits, bytes := 0, int64(0)
	for _, w := range all {
		switch n := f.answered[w]; {
		case n > 1:
			return w.Hash + " was answered twice"
		case (n == 1) != (w.state == lingering || w.state == done):
			return fmt.Sprintf("%s is %s and was answered %d times", w.Hash, stateNames[w.state], n)
		}
		if w.state == waiting {
			waits++
		}
		if w.state != done {
			bytes += int64(len(w.Settings))
			if f.live[w.Hash] != w {
				return w.Hash + " is forgotten"
			}
		}
		if w.state == lingering && w.until.IsZero() {
			return w.Hash + " lingers for ever"
		}
		if w.state == handed || w.state == lingering {
			if w.berth.held[w.Hash] != w {
				return w.Hash + " has no slot"
			}
		}
	}
	if waits != f.waiting || bytes != f.bytes {
		return fmt.Sprintf("%d wait of %d, %d bytes of %d", waits, f.waiting, bytes, f.bytes)
	}
	for _, b := range f.berths {
		if b.online && b.conn != 0 && f.next(b) != nil {
			return b.name + " has room for what waits"
		}
		if n := b.lines[0].Len() + b.lines[1].Len() + b.lines[2].Len() + b.lines[3].Len(); n != b.waiting {
			return fmt.Sprintf("%s: %d wait of %d", b.name, n, b.waiting)
		}
		if len(b.astray) > b.slots {
			return fmt.Sprintf("%s is said to be at %d works beside its slots", b.name, len(b.astray))
		}
		for _, w := range b.held {
			if w.state == waiting || w.state == done {
				return fmt.Sprintf("%s holds %s, which is %s", b.name, w.Hash, stateNames[w.state])
			}
		}
	}
	return ""
}
