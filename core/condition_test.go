package core

import (
	"errors"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// The follower's state machine: its table and its counts.

var (
	modes = []mode{
		modeUnassigned, modeWaiting, modeDown, modeHung, modeGivenUp, modePreparing, modeObstructed, modeOpening, modeCopying, modeReady, modeLagging, modeError,
	}
	noon       = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	errBusy    = ports.Errorf(ports.Unavailable, "store", "not now")
	errNoWrite = ports.Errorf(ports.Unauthorized, "store", "the password is wrong")
	errRefused = ports.Errorf(ports.Unimplemented, "store", "it has no such table")
	errNobody  = ports.InField(ports.Unavailable, ports.FieldAssignment, "nothing is assigned")
	errMakes   = ports.InField(ports.Unavailable, ports.FieldBootstrap, "makes its tables")
	errCannot  = ports.InField(ports.Unavailable, ports.FieldObstacle, "cannot make its tables")
	errDied    = ports.Errorf(ports.BackendGone, "store", "the process is gone")
)

func (k happeningKind) String() string {
	return map[happeningKind]string{
		answered: "answered", declined: "declined", missed: "missed", gone: "gone", givenUp: "given up", opened: "opened", caughtUp: "caught up",
		fellBehind: "fell behind", broke: "broke", stopped: "stopped", stalled: "stalled", awaits: "awaits", busy: "busy", needs: "needs", notKept: "not kept", poked: "poked", assigned: "assigned",
	}[k]
}

// stepText says what a step gives: the state, "=" for the same, and the effects.
func stepText(before, after condition, do effects) string {
	text := "="
	if after.mode != before.mode {
		text = string(after.mode)
	}
	for name, is := range map[string]bool{" begin": do.begin, " end": do.end, " restart": do.restart} {
		if is {
			text += name
		}
	}
	return text
}

func TestEveryStateAndHappeningGivesTheStateAndEffectsOfTheTable(t *testing.T) {
	t.Parallel()
	passing, perm := errBusy, errRefused
	for _, row := range []struct {
		happening happening
		want      string // for unassigned, waiting, down, hung, given-up, preparing, obstructed, bootstrapping, copying, ready, lagging, error
	}{
		{happening{kind: answered}, "bootstrapping begin, bootstrapping begin, =, =, =, bootstrapping begin, bootstrapping begin, =, =, =, =, ="},
		{happening{kind: declined, err: passing}, "down end, down end, = end, down end, down end, down end, down end, down end, down end, down end, down end, down end"},
		{happening{kind: declined, err: perm}, "error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, = end"},
		{happening{kind: declined, err: errNoWrite}, "error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, = end"},
		{happening{kind: declined, err: errNobody}, "= end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end"},
		{happening{kind: declined, err: errMakes}, "preparing end, preparing end, preparing end, preparing end, preparing end, = end, preparing end, preparing end, preparing end, preparing end, preparing end, preparing end"},
		{happening{kind: declined, err: errCannot}, "obstructed end, obstructed end, obstructed end, obstructed end, obstructed end, obstructed end, = end, obstructed end, obstructed end, obstructed end, obstructed end, obstructed end"},
		{happening{kind: busy}, "=, =, =, =, =, =, =, =, =, =, =, ="},
		{happening{kind: missed}, "=, =, =, =, =, =, =, =, =, =, =, ="},
		{happening{kind: gone}, "down end, down end, = end, down end, down end, down end, down end, down end, down end, down end, down end, = end"},
		{happening{kind: gone, detail: "another process"}, "down end, down end, = end, down end, down end, down end, down end, down end, down end, down end, down end, down end"},
		{happening{kind: givenUp}, "given-up end, given-up end, given-up end, given-up end, = end, given-up end, given-up end, given-up end, given-up end, given-up end, given-up end, given-up end"},
		{happening{kind: opened}, "=, =, =, =, =, =, =, copying, =, =, =, ="},
		{happening{kind: caughtUp}, "=, =, =, =, =, =, =, =, ready, =, ready, ="},
		{happening{kind: fellBehind}, "=, =, =, =, =, =, =, =, =, lagging, =, ="},
		{happening{kind: broke, err: passing}, "=, =, =, =, =, =, =, down, down, down, down, ="},
		{happening{kind: broke, err: perm}, "=, =, =, =, =, =, =, error, error, error, error, ="},
		{happening{kind: broke, err: errNobody}, "=, =, =, =, =, =, =, unassigned, unassigned, unassigned, unassigned, ="},
		{happening{kind: broke, err: errMakes}, "=, =, =, =, =, =, =, preparing, preparing, preparing, preparing, ="},
		{happening{kind: broke, err: errCannot}, "=, =, =, =, =, =, =, obstructed, obstructed, obstructed, obstructed, ="},
		{happening{kind: broke, err: errors.New("a defect")}, "=, =, =, =, =, =, =, down, down, down, down, ="},
		{happening{kind: stopped}, "=, =, =, =, =, =, =, = begin, bootstrapping begin, bootstrapping begin, bootstrapping begin, ="},
		{happening{kind: stalled, err: passing}, "=, =, =, =, =, =, =, =, =, =, =, ="},
		{happening{kind: awaits, detail: "a minute"}, "=, =, =, =, =, =, =, =, =, =, =, ="},
		{happening{kind: needs, detail: "full", remedy: "retry"}, "error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, error end, = end"},
		{happening{kind: notKept}, "= end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end"},
		{happening{kind: poked}, "=, =, =, =, =, =, =, =, =, =, =, bootstrapping begin"},
		{happening{kind: assigned}, "waiting end, = end, waiting end, waiting end, waiting end, waiting end, waiting end, waiting end, waiting end, waiting end, waiting end, waiting end"},
		{happening{kind: assigned, detail: "nothing is assigned"}, "= end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end, unassigned end"},
	} {
		for i, want := range strings.Split(row.want, ", ") {
			c := condition{mode: modes[i], since: noon, heard: noon}
			e := row.happening
			e.at = noon.Add(time.Second)
			after, do := c.step(e)
			if got := stepText(c, after, do); got != want {
				t.Errorf("%s, %s (%v): %q, want %q", modes[i], e.kind, e.err, got, want)
			}
			if same := after.mode == c.mode; after.since.Equal(noon) != same {
				t.Errorf("%s, %s: it is %s since %s", modes[i], e.kind, after.mode, after.since)
			}
			if after.mode.public() == needsOne && after.mode != c.mode && (after.detail == "" || after.remedy == "") {
				t.Errorf("%s, %s: what needs a person says %q and %q", modes[i], e.kind, after.detail, after.remedy)
			}
			if after.mode.public() != needsOne && after.remedy != "" {
				t.Errorf("%s, %s: %s has the remedy %q", modes[i], e.kind, after.mode, after.remedy)
			}
		}
	}
}

func TestAFollowerGoesAndComesByCounts(t *testing.T) {
	t.Parallel()
	type step struct {
		after time.Duration
		what  happening
		want  string
	}
	good, bad, no := happening{kind: answered}, happening{kind: missed}, happening{kind: declined, err: errBusy}
	for name, c := range map[string]struct {
		from  mode
		steps []step
	}{
		"suspect at the first miss, down at the third, up at the second good one": {modeReady, []step{
			{time.Second, good, "ready"}, {time.Second, good, "ready"}, {time.Second, good, "ready"},
			{2 * time.Second, bad, "ready suspect"}, {2 * time.Second, bad, "ready suspect"}, {2 * time.Second, bad, "down suspect end"},
			{time.Second, good, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"a good one in between clears the suspicion": {modeReady, []step{
			{2 * time.Second, bad, "ready suspect"}, {2 * time.Second, bad, "ready suspect"}, {time.Second, good, "ready"},
			{2 * time.Second, bad, "ready suspect"}, {2 * time.Second, bad, "ready suspect"}, {2 * time.Second, bad, "down suspect end"},
		}},
		"up needs two good ones in a row after a refusal, however long it was well before": {modeReady, []step{
			{time.Second, good, "ready"}, {time.Second, good, "ready"}, {time.Second, good, "ready"}, {time.Second, no, "down end"},
			{time.Second, good, "down"}, {time.Second, no, "down end"}, {time.Second, good, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"up needs two good ones in a row after a miss": {modeDown, []step{
			{time.Second, good, "down"}, {time.Second, bad, "down suspect"}, {time.Second, good, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"a death takes what was good before": {modeDown, []step{
			{time.Second, good, "down"}, {time.Second, happening{kind: gone}, "down end"}, {time.Second, good, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"after a session that broke one good probe is enough": {modeCopying, []step{
			{time.Second, happening{kind: broke, err: errBusy}, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"not when it broke because the process died": {modeCopying, []step{
			{time.Second, happening{kind: broke, err: errDied}, "down"}, {time.Second, good, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"hung after ten silent seconds, and again after ten more": {modeReady, []step{
			{4 * time.Second, bad, "ready suspect"}, {3 * time.Second, bad, "ready suspect"}, {3 * time.Second, bad, "hung suspect end restart"},
			{4 * time.Second, bad, "hung suspect"}, {5 * time.Second, bad, "hung suspect"}, {time.Second, bad, "hung suspect end restart"},
			{time.Second, happening{kind: gone}, "down end"}, {9 * time.Second, bad, "down suspect"}, {time.Second, bad, "hung suspect end restart"},
			{time.Second, good, "hung"}, {time.Second, good, "bootstrapping begin"},
		}},
		"a refusal is no silence": {modeDown, []step{
			{9 * time.Second, no, "down end"}, {9 * time.Second, bad, "down suspect"}, {time.Second, bad, "hung suspect end restart"},
		}},
		"what needs a person is looked at again after half a minute": {modeError, []step{
			{10 * time.Second, good, "error"}, {10 * time.Second, good, "error"}, {10 * time.Second, good, "bootstrapping begin"},
		}},
		"and the refusals meanwhile do not put that off": {modeError, []step{
			{15 * time.Second, happening{kind: declined, err: errRefused}, "error end"}, {15 * time.Second, good, "bootstrapping begin"},
		}},
		"a person who asks is heard at the next good probe": {modeDown, []step{
			{0, happening{kind: poked}, "down"}, {time.Second, good, "bootstrapping begin"},
		}},
		"a store that makes its tables is up at the first good one": {modeDown, []step{
			{time.Second, happening{kind: declined, err: errMakes}, "preparing end"}, {time.Second, good, "bootstrapping begin"},
		}},
		"one that cannot make them needs somebody, until it can": {modePreparing, []step{
			{time.Second, happening{kind: declined, err: errCannot}, "obstructed end"}, {time.Second, happening{kind: declined, err: errMakes}, "preparing end"},
			{time.Second, happening{kind: declined, err: errCannot}, "obstructed end"}, {time.Second, good, "bootstrapping begin"},
		}},
		"one that falls silent over it is down, and then hung": {modePreparing, []step{
			{2 * time.Second, bad, "preparing suspect"}, {2 * time.Second, bad, "preparing suspect"}, {2 * time.Second, bad, "down suspect end"},
			{4 * time.Second, bad, "hung suspect end restart"},
		}},
		"assigned, it is up at the first good one": {modeReady, []step{
			{time.Second, happening{kind: assigned, detail: "nothing is assigned"}, "unassigned end"}, {time.Second, happening{kind: declined, err: errNobody}, "unassigned end"},
			{time.Second, happening{kind: assigned}, "waiting end"}, {time.Second, happening{kind: declined, err: errMakes}, "preparing end"}, {time.Second, good, "bootstrapping begin"},
		}},
		"what nobody keeps is watched all the same": {modeUnassigned, []step{
			{4 * time.Second, bad, "unassigned suspect"}, {4 * time.Second, bad, "unassigned suspect"}, {2 * time.Second, bad, "hung suspect end restart"},
			{time.Second, happening{kind: gone}, "down end"}, {time.Second, happening{kind: declined, err: errNobody}, "unassigned end"},
		}},
		"given up and back": {modeReady, []step{
			{time.Second, happening{kind: givenUp, detail: "tried every 5 minutes"}, "given-up end"}, {time.Minute, happening{kind: givenUp}, "given-up end"},
			{time.Second, good, "given-up"}, {time.Second, good, "bootstrapping begin"},
		}},
	} {
		now := noon
		at := condition{mode: c.from, since: now, heard: now}
		for i, s := range c.steps {
			now = now.Add(s.after)
			s.what.at = now
			after, do := at.step(s.what)
			got := stepText(condition{}, condition{mode: after.mode}, effects{})
			if after.suspect {
				got += " suspect"
			}
			got += strings.TrimPrefix(stepText(after, after, effects{end: do.end}), "=")
			got += strings.TrimPrefix(stepText(after, after, effects{begin: do.begin}), "=")
			got += strings.TrimPrefix(stepText(after, after, effects{restart: do.restart}), "=")
			if got != s.want {
				t.Errorf("%s: step %d, %s: %q, want %q", name, i, s.what.kind, got, s.want)
			}
			at = after
		}
	}
}

func TestNothingButAProbeThatIsAnsweredMovesAFamilyThatTheBackendDoesNotKeep(t *testing.T) {
	t.Parallel()
	kept, _ := condition{mode: modeReady, since: noon, heard: noon}.step(happening{kind: notKept, at: noon})
	for _, e := range []happening{
		{kind: declined, err: errRefused}, {kind: declined, err: errMakes}, {kind: missed}, {kind: gone}, {kind: givenUp}, {kind: poked}, {kind: assigned},
		{kind: broke, err: errRefused}, {kind: stopped}, {kind: needs, detail: "d", remedy: "r"},
	} {
		e.at = noon.Add(time.Minute)
		if after, do := kept.step(e); after != kept || do != (effects{}) {
			t.Errorf("%s makes it %+v, %+v", e.kind, after, do)
		}
	}
	if after, do := kept.step(happening{kind: answered, at: noon}); after.mode != modeOpening || !do.begin {
		t.Errorf("a program that keeps it again is %+v, %+v", after, do)
	}
}

func TestAFollowerThatHasEverythingSaysNoMoreThatTheLocalStoreWasAway(t *testing.T) {
	t.Parallel()
	c := condition{mode: modeReady, since: noon, heard: noon}
	c, _ = c.step(happening{kind: stalled, at: noon.Add(time.Second), err: errBusy})
	if c.detail == "" {
		t.Error("it does not say that the local store tells no changes")
	}
	if c, _ = c.step(happening{kind: caughtUp, at: noon.Add(2 * time.Second)}); c.detail != "" || c.mode != modeReady || !c.since.Equal(noon) {
		t.Errorf("it is %+v", c)
	}
}
