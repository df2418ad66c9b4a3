package core

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// What holds for the follower's state machine in every sequence of happenings.

// patient is a follower around the machine, as far as the machine can tell.
type patient struct {
	condition
	now     time.Time
	heard   time.Time
	token   bool // a session may begin
	running bool
	ending  bool
	opened  bool
	had     bool // everything, since this session began
	misses  int
	goods   int // in a row
	eased   int // goods that are not needed
	poked   bool
}

// able says what can happen to it now.
func (p *patient) able() (list []happening) {
	list = []happening{
		{kind: answered}, {kind: answered}, {kind: answered}, {kind: missed}, {kind: missed}, {kind: declined, err: errBusy},
		{kind: declined, err: errRefused}, {kind: gone}, {kind: gone, detail: "another process"}, {kind: givenUp}, {kind: fellBehind}, {kind: poked},
		{kind: declined, err: errNobody}, {kind: declined, err: errMakes}, {kind: declined, err: errCannot}, {kind: assigned}, {kind: assigned, detail: "nothing is assigned"},
	}
	switch {
	case p.running && p.ending:
		list = append(list, happening{kind: stopped}, happening{kind: stopped}, happening{kind: stopped})
	case p.running && !p.opened:
		list = append(list, happening{kind: opened}, happening{kind: opened}, happening{kind: opened}, happening{kind: broke, err: errBusy}, happening{kind: needs, detail: "d", remedy: "r"})
	case p.running:
		list = append(list, happening{kind: caughtUp}, happening{kind: caughtUp}, happening{kind: stalled, err: errBusy}, happening{kind: broke, err: errDied}, happening{kind: broke, err: errRefused}, happening{kind: broke, err: errMakes}, happening{kind: broke, err: errCannot}, happening{kind: needs, detail: "d", remedy: "r"})
	}
	return list
}

// suffers lets something happen, and says what is wrong then; "" for nothing.
func (p *patient) suffers(e happening) string {
	e.at = p.now
	before := p.condition
	after, do := before.step(e)
	p.condition = after
	switch e.kind {
	case answered:
		p.heard, p.misses, p.goods = p.now, 0, p.goods+1
	case missed:
		p.misses, p.goods, p.eased = p.misses+1, 0, 0
	case declined:
		p.heard, p.misses, p.goods, p.eased = p.now, 0, 0, 0
	case gone, givenUp:
		p.heard, p.misses, p.goods, p.eased, p.poked = p.now, 0, 0, 0, false
	case opened:
		p.opened = true
	case caughtUp:
		p.had = true
	case broke, stopped, needs:
		p.running, p.ending, p.opened, p.had = false, false, false, false
		if e.kind != stopped {
			p.goods, p.eased = 0, 0
		}
		if e.kind == broke && ports.CodeOf(e.err) != ports.BackendGone {
			p.eased = 1
		}
	case poked:
		p.poked = true
	}
	rises := !before.mode.up() && after.mode.up()
	switch {
	case do.begin && p.running && !p.ending:
		return "a session is to begin, and one runs"
	case rises && (before.mode == modeDown || before.mode == modeHung || before.mode == modeGivenUp) && !p.poked && p.goods+p.eased < goodToUp:
		return fmt.Sprintf("it is up after %d good probes", p.goods)
	case rises && before.mode == modeError && !p.poked && p.now.Sub(before.since) < errorRetry:
		return "what needs a person is tried again too soon"
	case do.restart && p.now.Sub(p.heard) < silenceToHung:
		return "it is restarted, and was heard"
	case e.kind == missed && p.now.Sub(p.heard) >= silenceToHung && !do.restart:
		return "it is silent, and is not restarted"
	case e.kind == missed && after.mode.up() && p.misses >= missesToDown:
		return "it misses probes and is up"
	case after.suspect != (p.misses > 0):
		return fmt.Sprintf("suspect is %v after %d misses", after.suspect, p.misses)
	case e.kind == declined && (ports.AsError(e.err).Field == ports.FieldAssignment) != (after.mode == modeUnassigned):
		return "what is not assigned is not told as it is"
	case e.kind == declined && (ports.AsError(e.err).Field == ports.FieldBootstrap) != (after.mode == modePreparing):
		return "what makes its tables is not told as it is"
	case e.kind == declined && (ports.AsError(e.err).Field == ports.FieldObstacle) != (after.mode == modeObstructed):
		return "what cannot make its tables is not told as it is"
	case e.kind == assigned && after.mode.up():
		return "it is up, and nobody knows whose store it is"
	case before.mode.up() && !after.mode.up() && p.running && !p.ending && !do.end:
		return "it is not up, and its session goes on"
	case e.kind == caughtUp && after.mode == modeReady && after.detail != "":
		return "it has everything, and says " + after.detail
	case before.mode == after.mode && !before.since.Equal(after.since), before.mode != after.mode && !after.since.Equal(p.now):
		return "the time since which it is so is wrong"
	}
	if do.restart {
		p.heard = p.now
	}
	if do.end && p.running {
		p.ending = true
	}
	if do.begin {
		p.token, p.poked = true, false
	}
	return ""
}

// turn is the follower's loop: it begins a session when it may.
func (p *patient) turn() {
	if p.token && !p.running {
		p.token = false
		p.running = p.mode == modeOpening
	}
}

func (p *patient) stands() string {
	switch {
	case p.mode == modeReady && !p.had:
		return "it is ready and never had everything"
	case p.mode.takes() && (!p.running || p.ending || !p.opened):
		return "it takes changes without a session"
	case p.mode == modeOpening && !p.running && !p.token:
		return "it is to open, and nobody does it"
	case p.mode.public() == needsOne && (p.detail == "" || p.remedy == ""):
		return "it needs a person and does not say what for"
	case p.mode.public() != needsOne && p.remedy != "":
		return "it has a remedy and needs none"
	}
	return ""
}

func TestWhateverHappensTheMachineNeitherSticksNorRunsAhead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := &patient{condition: condition{mode: modeWaiting, since: noon, heard: noon}, now: noon, heard: noon}
		for i := range rapid.IntRange(1, 60).Draw(t, "steps") {
			p.now = p.now.Add(time.Duration(rapid.SampledFrom([]int{250, 500, 1000, 2000, 4000, 15000}).Draw(t, "ms")) * time.Millisecond)
			e := rapid.SampledFrom(p.able()).Draw(t, "happening")
			before := p.mode
			wrong := p.suffers(e)
			if rapid.IntRange(0, 3).Draw(t, "turn") > 0 {
				p.turn()
			}
			t.Logf("%d: %s, %s (%v) -> %s", i, before, e.kind, e.err, p.mode)
			if wrong == "" {
				wrong = p.stands()
			}
			if wrong != "" {
				t.Fatal(wrong)
			}
		}
		// Once all is well for a while it is ready.
		for range 100 {
			p.now = p.now.Add(time.Second)
			e := happening{kind: answered}
			switch {
			case p.running && p.ending:
				e.kind = stopped
			case p.running && !p.opened:
				e.kind = opened
			case p.running && p.mode != modeReady:
				e.kind = caughtUp
			}
			if wrong := p.suffers(e); wrong != "" {
				t.Fatal(wrong)
			}
			p.turn()
		}
		if p.mode != modeReady {
			t.Fatalf("all is well, and it is %s", p.mode)
		}
	})
}
