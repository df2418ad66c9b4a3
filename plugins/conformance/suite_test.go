package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// bare is a backend that does nothing; what it says of itself is the test's.
type bare struct {
	ports.Backend
	says   ports.Description
	probe  func(ctx context.Context) error
	closes func() error
}

func (b *bare) Describe(context.Context) (ports.Description, error) { return b.says, nil }

func (b *bare) Probe(ctx context.Context, _ ports.Family) error { return b.probe(ctx) }

func (b *bare) Close() error {
	if b.closes != nil {
		return b.closes()
	}
	return nil
}

// queueOnly keeps work items and shows them.
var queueOnly = ports.Description{Kind: "bare", Version: "1", Summary: "nothing", Families: []ports.Family{ports.Queue}, Powers: []string{"ItemReader"}}

// ask probes the backend, as the cases of these tests do.
func ask(c *C) {
	if err := c.Backend().Probe(c.Ctx, ports.Queue); err != nil {
		c.Errorf("probe: %v", err)
	}
}

// judge runs cases against a backend whose Probe is the test's.
func judge(t *testing.T, says ports.Description, probe func(ctx context.Context) error, cases ...Case) *Report {
	t.Helper()
	s := InProcess(func() ports.Backend { return &bare{says: says, probe: probe} })
	s.Patience = 100 * time.Millisecond
	return judged(t, s, cases...)
}

func judged(t *testing.T, s Subject, cases ...Case) *Report {
	t.Helper()
	var told []Result
	report, err := suite(cases).check(t.Context(), s, "", func(r Result) { told = append(told, r) })
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != len(cases) || len(report.Results) != len(cases) {
		t.Fatalf("%d results were told and %d kept of %d cases", len(told), len(report.Results), len(cases))
	}
	return report
}

func fine(context.Context) error { return nil }

// follows asks whether an outcome has the text in its reason.
func follows(t *testing.T, r Result, want Outcome, text string) {
	t.Helper()
	if r.Outcome != want || !strings.Contains(strings.Join(r.Reason, "\n"), text) {
		t.Errorf("%s: %s %q; want %s with %q", r.Case.Path(), r.Outcome, r.Reason, want, text)
	}
}

func TestACaseThatFailsTellsWhatWasAskedAndWhatIsWrong(t *testing.T) {
	t.Parallel()
	probe := func(context.Context) error { return ports.InField(ports.Full, "disk", "no room; free some") }
	report := judge(t, queueOnly, probe, Case{Topic: "a", Name: "fails", Run: ask}, Case{Topic: "a", Name: "passes", Run: func(*C) {}})
	r := report.Results[0]
	follows(t, r, Failed, "no room; free some")
	if len(r.Trace) != 1 || r.Trace[0].Call != "Probe" || r.Trace[0].Request != `"Queue"` || !strings.HasPrefix(r.Trace[0].Err, "full: ") {
		t.Errorf("the trace is %+v", r.Trace)
	}
	if report.Results[1].Outcome != Passed || report.OK() || report.Badge() != "not certified: 1 of 2 cases failed" {
		t.Errorf("%v, %q", report.Results[1], report.Badge())
	}
}

func TestABackendThatHangsFailsItsCaseAndTheNextGetsANewOne(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	t.Cleanup(func() { close(freed) })
	hang := func(context.Context) error {
		<-freed
		return nil
	}
	report := judge(t, queueOnly, hang, Case{Topic: "a", Name: "hangs", Run: ask}, Case{Topic: "a", Name: "next", Run: func(c *C) { c.Backend() }})
	follows(t, report.Results[0], Failed, "it does not return")
	if report.Results[1].Outcome != Passed {
		t.Errorf("the next one: %+v", report.Results[1])
	}
	slow := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	follows(t, judge(t, queueOnly, slow, Case{Topic: "a", Name: "slow", Run: ask}).Results[0], Failed, "no answer within 100ms")
	s := InProcess(func() ports.Backend { return &bare{says: queueOnly, probe: fine, closes: waits(freed)} })
	s.Patience = 100 * time.Millisecond
	d := queueOnly
	r := suite{}.try(t.Context(), &s, &d, &Case{Topic: "a", Name: "close", Run: ask})
	follows(t, r, Failed, "close")
}

func TestABackendThatAlwaysHangsIsNotAskedForEver(t *testing.T) {
	t.Parallel()
	var cases []Case
	for i := range 9 {
		cases = append(cases, Case{Topic: "a", Name: fmt.Sprint(i), Run: ask})
	}
	report := judge(t, queueOnly, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}, cases...)
	if failed, untried := report.Count(Failed), report.Count(Untried); failed != 5 || untried != 4 {
		t.Errorf("%d failed and %d were not tried", failed, untried)
	}
	follows(t, report.Results[8], Untried, "had no answer at all")
}

func TestACaseThatIsInterruptedSaysNothing(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	s := InProcess(func() ports.Backend { return &bare{says: queueOnly, probe: fine} })
	all := suite{{Topic: "a", Name: "before", Run: ask}, {Topic: "a", Name: "interrupted", Run: func(c *C) {
		interrupt()
		<-c.Ctx.Done()
	}}, {Topic: "a", Name: "behind", Run: ask}}
	report, err := all.check(ctx, s, "", func(Result) {})
	if !errors.Is(err, context.Canceled) || len(report.Results) != 1 {
		t.Errorf("%v, %+v", err, report)
	}
}

// waits gives a Close that waits.
func waits(freed chan struct{}) func() error {
	return func() error {
		<-freed
		return nil
	}
}

func TestAPanicFailsTheCaseAndNothingElse(t *testing.T) {
	t.Parallel()
	report := judge(
		t, queueOnly, func(context.Context) error { panic("a defect there") },
		Case{Topic: "a", Name: "backend", Run: ask}, Case{Topic: "a", Name: "case", Run: func(*C) { panic("a defect here") }},
		Case{Topic: "a", Name: "fatal", Run: func(c *C) { c.Fatalf("enough") }}, Case{Topic: "a", Name: "passes", Run: func(*C) {}},
	)
	follows(t, report.Results[0], Failed, "it panicked: a defect there")
	follows(t, report.Results[1], Failed, "the case panicked: a defect here")
	follows(t, report.Results[2], Failed, "enough")
	follows(t, report.Results[3], Passed, "")
}

func TestACaseThatNeverEndsIsGivenUp(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	t.Cleanup(func() { close(freed) })
	report := judge(t, queueOnly, fine, Case{Topic: "a", Name: "endless", Run: func(*C) { <-freed }})
	follows(t, report.Results[0], Failed, "it was not done within 600ms")
}

func TestWhatIsNotOfferedOrOptedOutOfIsLeftOutAndListed(t *testing.T) {
	t.Parallel()
	says := queueOnly
	says.OptOuts = []ports.OptOut{{Of: "durability", Reason: "keeps everything in memory"}, {Of: "put/order", Reason: "has no order"}}
	never := func(c *C) { c.Errorf("it ran") }
	run := func(*C) {}
	report := judge(
		t, says, fine,
		Case{Topic: "durability", Name: "closed", Run: never}, Case{Topic: "durability", Name: "killed", Kills: true, Run: never},
		Case{Topic: "put", Name: "order", Run: never}, Case{Topic: "put", Name: "stored", Reads: true, Run: run},
		Case{Topic: "changes", Name: "all", Needs: []string{"LocalStore", "Exporter"}, Run: never},
		Case{Topic: "readers", Name: "manifest", Needs: []string{"ManifestReader"}, Of: []ports.Family{ports.Manifest}, Run: never},
		Case{Topic: "order", Name: "killed", Kills: true, Run: never},
	)
	var outcomes []Outcome
	for _, r := range report.Results {
		outcomes = append(outcomes, r.Outcome)
	}
	want := []Outcome{OptedOut, OptedOut, OptedOut, Passed, NotOffered, NotOffered, Untried}
	if !slices.Equal(outcomes, want) {
		t.Errorf("the outcomes are %q, want %q", outcomes, want)
	}
	line := "certified holdfast.backend.v1: 1/1, opt-outs: Manifest (not kept), LocalStore, Exporter (not offered), " +
		"durability (keeps everything in memory), put/order (has no order), untried: order/killed"
	if report.Badge() != line {
		t.Errorf("the badge is\n%s, want\n%s", report.Badge(), line)
	}
}

func TestABadgeIsOnlyForAWholeRunInWhichSomethingRan(t *testing.T) {
	t.Parallel()
	s := InProcess(func() ports.Backend { return &bare{says: queueOnly, probe: fine} })
	two := suite{{Topic: "a", Name: "one", Run: ask}, {Topic: "b", Name: "two", Run: ask}}
	for pattern, want := range map[string]string{
		"":      "certified holdfast.backend.v1: 2/2, opt-outs: none",
		"a":     "not certified: only 1 of the 2 cases were asked for, none of them failed",
		"b/two": "not certified: only 1 of the 2 cases were asked for, none of them failed",
		"*":     "certified holdfast.backend.v1: 2/2, opt-outs: none",
	} {
		report, err := two.check(t.Context(), s, pattern, func(Result) {})
		if err != nil || report.Badge() != want || report.Certified() != strings.HasPrefix(want, "certified") {
			t.Errorf("%q: %q, %v", pattern, report.Badge(), err)
		}
	}
	for _, pattern := range []string{"nothing", "[", "a/two"} {
		if _, err := two.check(t.Context(), s, pattern, nil); ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != "run" {
			t.Errorf("%q: %v", pattern, err)
		}
	}
	none := suite{{Topic: "a", Name: "one", Needs: []string{"Pruner"}, Run: ask}}
	report, err := none.check(t.Context(), s, "", func(Result) {})
	if err != nil || report.Badge() != "not certified: every case was left out" {
		t.Errorf("%q, %v", report.Badge(), err)
	}
}

func TestNoMoreCallsAreMadeAtATimeThanTheBackendTakes(t *testing.T) {
	t.Parallel()
	says := queueOnly
	says.Slots = 2
	inside := make(chan struct{}, 2)
	probe := func(context.Context) error {
		select {
		case inside <- struct{}{}:
		default:
			return ports.Errorf(ports.Internal, "probe", "too many at a time")
		}
		defer func() { <-inside }()
		return nil
	}
	report := judge(t, says, probe, Case{Topic: "a", Name: "many", Run: func(c *C) {
		c.Backend()
		together(16, func(int) { ask(c) })
	}})
	follows(t, report.Results[0], Passed, "")
}

func TestABackendThatDoesNotOpenIsTold(t *testing.T) {
	t.Parallel()
	s := Subject{Open: func(context.Context, ports.Configuration) (ports.Backend, error) {
		return nil, ports.InField(ports.Invalid, "dsn", "is missing")
	}}
	if _, err := Check(t.Context(), s, "", nil); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("got %v", err)
	}
}

func TestEveryCaseHasARuleAndANameOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Cases() {
		if c.Must == "" || c.Topic == "" || c.Name == "" || c.Run == nil || strings.Contains(c.Topic+c.Name, "/") || seen[c.Path()] {
			t.Errorf("%s: %+v", c.Path(), c)
		}
		seen[c.Path()] = true
		for _, p := range c.Needs {
			if !slices.Contains(powers, p) {
				t.Errorf("%s needs %q, which is no power", c.Path(), p)
			}
		}
	}
	if d := (ports.Description{Families: ports.Families, Powers: powers}); len(readable(&d)) != len(ports.Kinds) {
		t.Errorf("%q can be read", readable(&d))
	}
}
