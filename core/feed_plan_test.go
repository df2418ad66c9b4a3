package core

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/traffic"
	"holdfast/ports"
)

// Random plans for a Host with followers: what is written, what breaks, what is read, and when.

// feedPlan is a whole run.
type feedPlan struct {
	Ack       Ack
	Page      int  // rows in a page of changes at most
	Shared    bool // another host writes the same keys; then the local store never goes back
	Followers []feedFollower
	Route     []string
	Steps     []feedStep
}

// feedFollower is how a follower is made.
type feedFollower struct {
	Slots      int
	NoPosition bool
	KeyOnly    bool
	Loose      bool
}

// feedStep is one thing that happens. N and M say to whom, and how much.
type feedStep struct {
	What string
	N, M int
	Acts []traffic.Act
}

func (s feedStep) GoString() string { return s.What }

func (s feedStep) String() string {
	text := fmt.Sprintf("%s %d %d", s.What, s.N, s.M)
	for _, a := range s.Acts {
		text += fmt.Sprintf("\n    %s %s", a.Action, a.Settings)
	}
	return text
}

var (
	feedKeys  = []string{"k1", "k2", "k3", "k4"}
	otherKeys = []string{"x1", "x2"}
)

// feedSteps are the steps, as often as they are drawn.
var feedSteps = map[string]int{
	"write": 12, "other": 3, "pass": 8, "read": 8, "read among writes": 4,
	"kill": 2, "slow": 1, "suffer": 4, "cure": 3, "mute": 1, "decline": 1, "deaf": 1, "backup": 2, "older": 1, "wipe": 1, "twin": 1,
	"local dies": 2, "local suffers": 2, "local backup": 2, "local older": 1,
	"again": 1, "crash": 1, "retry": 1, "resync": 1, "data backup": 2, "data older": 1,
}

// drawnSteps is feedSteps as a list, in a fixed order.
var drawnSteps = func() (list []string) {
	for what, weight := range feedSteps {
		for range weight {
			list = append(list, what)
		}
	}
	slices.Sort(list)
	return list
}()

func genStep(t *rapid.T, shared bool) feedStep {
	s := feedStep{What: rapid.SampledFrom(drawnSteps).Draw(t, "what"), N: rapid.IntRange(0, 19).Draw(t, "n"), M: rapid.IntRange(0, 11).Draw(t, "m")}
	switch s.What {
	case "write", "read among writes":
		s.Acts = rapid.SliceOfN(ofKeys(feedKeys...), 1, 6).Draw(t, "acts")
	case "other":
		keys := otherKeys
		if shared {
			keys = slices.Concat(feedKeys, otherKeys)
		}
		s.Acts = rapid.SliceOfN(ofKeys(keys...), 1, 5).Draw(t, "acts")
	}
	return s
}

func genPlan(t *rapid.T) feedPlan {
	p := feedPlan{
		Ack: rapid.SampledFrom([]Ack{AckLocal, AckLocal, AckJournaled}).Draw(t, "ack"), Page: rapid.SampledFrom([]int{1, 2, 3, 0}).Draw(t, "page"),
		Shared: rapid.Bool().Draw(t, "shared"),
	}
	for i := range rapid.IntRange(1, 2).Draw(t, "followers") {
		f := feedFollower{Slots: rapid.SampledFrom([]int{0, 0, 1, 2, 4}).Draw(t, "slots"), Loose: rapid.Bool().Draw(t, "loose")}
		if i > 0 {
			f.NoPosition, f.KeyOnly = rapid.Bool().Draw(t, "no position"), rapid.Bool().Draw(t, "key only")
		}
		p.Followers = append(p.Followers, f)
		p.Route = append(p.Route, mirrorName(i))
	}
	p.Route = append(p.Route, "local")
	p.Steps = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) feedStep { return genStep(t, p.Shared) }), 5, 60).Draw(t, "steps")
	return p
}

// genHurried makes plans in which the first of two followers is slow to answer and the second slow to follow, while much is
// written and read.
func genHurried(t *rapid.T) feedPlan {
	p := feedPlan{Ack: AckLocal, Page: 1, Followers: make([]feedFollower, 2), Route: []string{mirrorName(0), mirrorName(1), "local"}}
	write := func() feedStep {
		return feedStep{What: "write", M: rapid.IntRange(0, 11).Draw(t, "m"), Acts: rapid.SliceOfN(ofKeys(feedKeys...), 4, 8).Draw(t, "acts")}
	}
	p.Steps = []feedStep{write(), write(), {What: "pass", M: 8}, {What: "deaf", N: 0, M: 3}, {What: "slow", N: 1, M: 5}}
	for range 12 {
		read := write()
		read.What, read.N = "read among writes", rapid.IntRange(0, 5).Draw(t, "n")
		p.Steps = append(p.Steps, write(), read, feedStep{What: "pass", M: 5})
	}
	return p
}

// genRestored makes plans in which the whole host is restored from a backup while a follower is away, and goes on to beyond
// what the follower has seen.
func genRestored(t *rapid.T) feedPlan {
	p := genPlan(t)
	p.Shared, p.Followers, p.Route = false, []feedFollower{{Slots: p.Followers[0].Slots}}, []string{mirrorName(0), "local"}
	write := func() feedStep {
		return feedStep{What: "write", M: 1, Acts: rapid.SliceOfN(ofKeys(feedKeys...), 4, 6).Draw(t, "acts")}
	}
	p.Steps = []feedStep{
		write(), {What: "pass", M: 8}, {What: "data backup"}, write(), {What: "pass", M: 6}, {What: "kill", M: 6}, {What: "data older"},
		write(), write(), write(), {What: "pass", M: rapid.IntRange(0, 11).Draw(t, "m")}, {What: "read"},
	}
	return p
}

func mirrorName(i int) string { return fmt.Sprint("m", i+1) }

// pauses are how much time a step lets pass.
var pauses = []time.Duration{
	0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond, 200 * time.Millisecond, time.Second,
	2500 * time.Millisecond, 5 * time.Second, 12 * time.Second, 31 * time.Second, 65 * time.Second,
}

// mirrorFate gives a fate of Puts: the next few, or all that hold a key.
func mirrorFate(n, m int) func(*ports.Batch) putFate {
	refusal := ports.Errorf([]ports.Code{ports.Invalid, ports.TooLarge, ports.Unavailable, ports.Full, ports.Internal}[m%5], "mirror", "not this one")
	fates := []putFate{
		{kind: putDies}, {kind: putLoses}, {kind: putRefuses, err: refusal}, {kind: putHangs}, {kind: putSilent},
		{kind: putLate, after: pauses[5+m%6]}, {kind: putLost, after: pauses[5+m%6]}, {kind: putTwice, after: pauses[3+m%8]},
		{kind: putWrong, done: 1}, {kind: putWrong, done: -1}, {after: pauses[3+m%6]},
	}
	f := fates[n%len(fates)]
	if n%3 == 0 {
		key := feedKeys[m%len(feedKeys)]
		f.key = key
		return onPut(key, f)
	}
	left := 1 + m%4
	return func(b *ports.Batch) putFate {
		if len(b.Rows) == 0 || left == 0 {
			return putFate{}
		}
		left--
		return f
	}
}
