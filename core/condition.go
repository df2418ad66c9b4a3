package core

import (
	"time"

	"holdfast/ports"
)

// Where a follower stands: a pure state machine. The follower tells it what happened and does what it says.

// mode is a state of the machine.
type mode string

const (
	modeUnassigned mode = "unassigned"    // the backend does not keep this family, or nobody is assigned to keep it behind it
	modeWaiting    mode = "waiting"       // not reached since the start
	modeDown       mode = "down"          // not reachable, or it takes no writes
	modeHung       mode = "hung"          // answers nothing at all
	modeGivenUp    mode = "given-up"      // its process dies too often
	modePreparing  mode = "preparing"     // makes its tables and endpoints, and takes nothing yet
	modeObstructed mode = "obstructed"    // cannot make them, says why, and tries again by itself
	modeOpening    mode = "bootstrapping" // the session asks for its position, and where to resume
	modeCopying    mode = "copying"       // on its way to the local store's state
	modeReady      mode = "ready"         // had everything, a moment ago
	modeLagging    mode = "lagging"       // was ready, and fell behind
	modeError      mode = "error"         // needs a person
)

// public is the state as everybody knows it.
func (m mode) public() phase {
	switch m {
	case modeUnassigned:
		return "unassigned"
	case modePreparing, modeOpening:
		return opening
	case modeCopying, modeReady, modeLagging:
		return ready
	case modeError, modeObstructed:
		return needsOne
	}
	return waiting
}

// up says whether it takes changes, or is about to.
func (m mode) up() bool { return m == modeOpening || m.takes() }

// takes says whether it takes changes.
func (m mode) takes() bool { return m == modeCopying || m == modeReady || m == modeLagging }

// ails says whether something is wrong.
func (m mode) ails() bool {
	return m == modeDown || m == modeHung || m == modeGivenUp || m == modeError || m == modeObstructed
}

// Numbers of the machine.
const (
	missesToDown  = 3 // probes without an answer, one after the other
	goodToUp      = 2 // probes with one, after it was down
	silenceToHung = 10 * time.Second
	errorRetry    = 30 * time.Second // after which what needed a person is looked at again
)

// condition is the machine's state.
type condition struct {
	mode    mode
	since   time.Time
	detail  string
	remedy  string
	foreign bool // unassigned, because the backend does not keep this family at all
	suspect bool // the last probe was not answered in time
	mute    bool // it went away without a word: what was asked of it has no answer
	missed  int
	good    int
	heard   time.Time // when it last answered anything, or was last started
}

// happening is something that happened to a follower.
type happening struct {
	kind   happeningKind
	at     time.Time
	err    error  // declined, broke
	detail string // gone, needs, fell behind
	remedy string // needs
}

type happeningKind int

const (
	answered   happeningKind = iota // a probe was good
	declined                        // a probe said no
	missed                          // a probe had no answer in time
	busy                            // a probe could not be sent, because of calls that are answered
	gone                            // the process or the connection is not there
	givenUp                         // and is started again rarely
	opened                          // the session knows where to resume
	caughtUp                        // nothing was left to copy
	fellBehind                      // too much is left to copy
	broke                           // the session ended by itself
	stopped                         // the session was ended, for a repair or to begin elsewhere
	awaits                          // the session cannot begin to copy yet
	stalled                         // the local store does not tell what changed
	needs                           // the session found what only a person can mend
	notKept                         // the backend does not keep this family
	poked                           // a person asked for another try at once
	assigned                        // another beacon, or another connection of it, shall keep the family, or none
)

// effects is what the follower has to do.
type effects struct {
	begin   bool // a session
	end     bool // the session
	restart bool // the process
}

// step gives the next state and what is to be done.
func (c condition) step(e happening) (condition, effects) {
	if c.foreign && e.kind != notKept && e.kind != answered {
		return c, effects{}
	}
	switch e.kind {
	case answered:
		return c.hearGood(e.at)
	case declined:
		c.heard, c.missed, c.good, c.suspect, c.mute = e.at, 0, 0, false, false
		return c.refused(e), effects{end: true}
	case missed:
		return c.miss(e.at)
	case busy:
		c.heard, c.missed, c.suspect = e.at, 0, false
	case gone:
		return c.lose(modeDown, e)
	case givenUp:
		return c.lose(modeGivenUp, e)
	case opened:
		if c.mode == modeOpening {
			return c.to(modeCopying, e.at, "", ""), effects{}
		}
	case caughtUp:
		if c.mode == modeCopying || c.mode == modeLagging {
			return c.to(modeReady, e.at, "", ""), effects{}
		}
		if c.mode == modeReady {
			c.detail = ""
		}
	case fellBehind:
		if c.mode == modeReady {
			return c.to(modeLagging, e.at, e.detail, ""), effects{}
		}
	case broke:
		return c.fail(e)
	case stopped:
		if c.mode.up() {
			return c.to(modeOpening, e.at, "", ""), effects{begin: true}
		}
	case awaits:
		if c.mode == modeOpening {
			c.detail = e.detail
		}
	case stalled:
		if c.mode.takes() {
			c.detail = e.err.Error()
		}
	case needs:
		return c.to(modeError, e.at, e.detail, e.remedy), effects{end: true}
	case notKept:
		c = c.to(modeUnassigned, e.at, "the backend does not keep this family", "")
		c.foreign = true
		return c, effects{end: true}
	case poked:
		if !c.mode.up() {
			c.good = goodToUp // the next good probe is enough
			if c.mode == modeError {
				return c.to(modeOpening, e.at, "", ""), effects{begin: true}
			}
		}
	case assigned:
		if e.detail == "" {
			return c.to(modeWaiting, e.at, "assigned just now", ""), effects{end: true}
		}
		return c.to(modeUnassigned, e.at, e.detail, ""), effects{end: true}
	}
	return c, effects{}
}

func (c condition) hearGood(at time.Time) (condition, effects) {
	c.heard, c.missed, c.suspect, c.mute = at, 0, false, false
	c.good++
	enough := false
	switch c.mode {
	case modeUnassigned, modeWaiting, modePreparing, modeObstructed:
		enough = true
	case modeDown, modeHung, modeGivenUp:
		enough = c.good >= goodToUp
	case modeError:
		enough = at.Sub(c.since) >= errorRetry
	}
	if !enough {
		return c, effects{}
	}
	return c.to(modeOpening, at, "", ""), effects{begin: true}
}

func (c condition) miss(at time.Time) (condition, effects) {
	c.good = 0
	c.missed++
	c.suspect, c.mute = true, true
	silent := at.Sub(c.heard)
	if silent >= silenceToHung {
		c.heard = at // the next process gets its own time
		return c.to(modeHung, at, "has answered nothing for "+silent.Round(time.Second).String(), ""), effects{end: true, restart: true}
	}
	if c.missed >= missesToDown && (c.mode.up() || c.mode == modePreparing || c.mode == modeObstructed) {
		return c.to(modeDown, at, "does not answer in time", ""), effects{end: true}
	}
	return c, effects{}
}

func (c condition) lose(m mode, e happening) (condition, effects) {
	c.good, c.missed, c.suspect, c.mute, c.heard = 0, 0, false, true, e.at
	if c.mode == modeError && m == modeDown && e.detail == "" {
		return c, effects{end: true}
	}
	return c.to(m, e.at, e.detail, ""), effects{end: true}
}

// fail is a session's end: the probes say when the next one is worth while.
func (c condition) fail(e happening) (condition, effects) {
	if !c.mode.up() {
		return c, effects{}
	}
	c.good = goodToUp - 1
	if ports.CodeOf(e.err) == ports.BackendGone {
		c.good = 0
	}
	return c.refused(e), effects{}
}

// refused is the state that an error leads to; some say that nothing is wrong.
func (c condition) refused(e happening) condition {
	why := ports.AsError(e.err)
	switch {
	case needsPerson(e.err):
		return c.to(modeError, e.at, e.err.Error(), "mend what it says; the host goes on by itself then")
	case why.Field == ports.FieldAssignment:
		return c.to(modeUnassigned, e.at, why.Message, "")
	case why.Field == ports.FieldBootstrap:
		return c.to(modePreparing, e.at, why.Message, "")
	case why.Field == ports.FieldObstacle:
		return c.to(modeObstructed, e.at, why.Message, "mend what it says; it is tried again by itself")
	}
	return c.to(modeDown, e.at, e.err.Error(), "")
}

// to changes the state; what it was since stands while nothing changes.
func (c condition) to(m mode, at time.Time, detail, remedy string) condition {
	if c.mode != m {
		c.since = at
	}
	c.mode, c.detail, c.remedy, c.foreign = m, detail, remedy, false
	if !m.ails() {
		c.good = 0
	}
	return c
}

// needsPerson says whether an error stays until somebody does something: a refusal of the whole store, not of one record.
func needsPerson(err error) bool {
	code := ports.CodeOf(err)
	return code.Permanent() || code == ports.Unauthorized
}
