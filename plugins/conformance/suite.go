package conformance

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Case is one rule and how it is tried.
type Case struct {
	Topic string
	Name  string
	Must  string         // the rule, in one sentence: "a Put that is repeated changes nothing"
	Needs []string       // powers that the backend must declare, by name
	Of    []ports.Family // families that it must keep
	Reads bool           // it sees what it put through whatever reader there is, and needs at least one
	Pages bool           // it walks through whatever lists there are, and needs at least one
	With  string         // the case on which it builds: who opts out of that one is not asked this one either
	Kills bool           // it ends the backend with Subject.Kill
	Large bool           // it moves records of the largest size, or makes very many calls, and may take longer
	Run   func(c *C)
}

// Path is what --run takes: topic/name.
func (c *Case) Path() string { return c.Topic + "/" + c.Name }

// cases are all cases, in the order of the report.
var cases = slices.Concat(
	describeCases, probeCases, putCases, positionCases, orderCases, readerCases, listCases, pagingCases,
	bytesCases, limitCases, errorCases, deadlineCases, concurrencyCases, durabilityCases, drainCases,
	decideCases, hubCases, commitCases, commitKillCases, epochCases, changesCases, changesHistoryCases, freshnessCases, copyingCases, pruneCases, exportCases, surveyCases,
)

// Cases lists the suite.
func Cases() []Case { return slices.Clone(cases) }

// Outcome is how a case ended.
type Outcome string

const (
	Passed     Outcome = "passed"
	Failed     Outcome = "failed"
	OptedOut   Outcome = "opted out"   // declared, with a reason
	NotOffered Outcome = "not offered" // it needs a power or a family that the backend does not declare
	Untried    Outcome = "untried"     // the subject cannot be killed, or there is no time for it here
)

// Result is one case's.
type Result struct {
	Case    *Case
	Outcome Outcome
	Reason  []string // what went wrong, a line each; or why it was left out
	Took    time.Duration
	Trace   []Exchange // of a failed case: what was asked and answered

	hung bool // a call had no answer
}

// Run runs the suite as subtests, topic by topic, and logs the badge at the end. Under the race detector it leaves out the
// large cases of a backend that runs in this process.
func Run(t *testing.T, s Subject) {
	t.Helper()
	suite(cases).run(t, s)
}

// Check runs the cases whose path matches a pattern (a topic, "topic/case", or with * as in path.Match; "" for all), one
// after the other, and tells each result as it comes. extra are cases about what only the caller can see, such as the
// processes of a plugin; they count as the others do.
func Check(ctx context.Context, s Subject, pattern string, tell func(Result), extra ...Case) (*Report, error) {
	return suite(slices.Concat(cases, extra)).check(ctx, s, pattern, tell)
}

// suite is a list of cases that runs.
type suite []Case

func (all suite) run(t *testing.T, s Subject) {
	t.Helper()
	d, err := describe(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	results := make([]Result, len(all))
	t.Cleanup(func() { // after the last subtest
		report := Report{Description: d, of: len(all)}
		for _, r := range results {
			if r.Case != nil {
				report.Results = append(report.Results, r)
			}
		}
		t.Log(report.Badge())
	})
	for i := range all {
		t.Run(all[i].Path(), func(t *testing.T) {
			t.Parallel()
			r := Result{Case: &all[i], Outcome: Untried, Reason: []string{"it takes too long under the race detector; run it without"}}
			if !raced || !s.here || !all[i].Large {
				r = all.try(t.Context(), &s, &d, &all[i])
			}
			switch results[i] = r; r.Outcome {
			case Passed:
			case Failed:
				t.Errorf("%s\n%s\n%s", all[i].Must, strings.Join(r.Reason, "\n"), traced(r.Trace))
			default:
				t.Skipf("%s: %s", r.Outcome, strings.Join(r.Reason, "; "))
			}
		})
	}
}

// tooManyHangs is how many cases in which a call had no answer end a check: each takes its whole patience.
const tooManyHangs = 5

func (all suite) check(ctx context.Context, s Subject, pattern string, tell func(Result)) (*Report, error) {
	chosen, err := all.choose(pattern)
	if err != nil {
		return nil, err
	}
	report := &Report{of: len(all)}
	if report.Description, err = describe(ctx, &s); err != nil {
		return nil, err
	}
	hangs := 0
	for _, c := range chosen {
		r := Result{Case: c, Outcome: Untried, Reason: []string{fmt.Sprintf("the %d cases before it that failed had no answer at all; mend those first", tooManyHangs)}}
		if hangs < tooManyHangs {
			r = all.try(ctx, &s, &report.Description, c)
		}
		if err := ctx.Err(); err != nil {
			return report, err // what the case was in the middle of says nothing
		}
		if r.hung {
			hangs++
		}
		report.Results = append(report.Results, r)
		tell(r)
	}
	return report, nil
}

func (all suite) choose(pattern string) (chosen []*Case, _ error) {
	for i := range all {
		c := &all[i]
		whole, err := path.Match(pattern, c.Path())
		if err != nil {
			return nil, ports.InField(ports.Invalid, "run", "%q is no pattern: %v", pattern, err)
		}
		topic, _ := path.Match(pattern, c.Topic)
		if whole || topic || pattern == "" {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return nil, ports.InField(ports.Invalid, "run", "%q matches no case; leave it out to see all of them", pattern)
	}
	return chosen, nil
}
