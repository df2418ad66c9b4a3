package conformance

import (
	"context"
	"fmt"
	"os"
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
	Kills bool           // the case ends the backend with Subject.Kill
	Run   func(c *C)
}

// Path is what --run takes: topic/name.
func (c *Case) Path() string { return c.Topic + "/" + c.Name }

// Limit is how long one case may take; a backend that hangs fails it.
const Limit = 60 * time.Second

// cases are all cases, in the order of the report.
var cases = slices.Concat(
	describeCases,
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
	Untried    Outcome = "untried"     // the subject cannot be killed
)

// Result is one case's.
type Result struct {
	Case    *Case
	Outcome Outcome
	Reason  []string // what went wrong, a line each; or why it was left out
	Took    time.Duration
	Trace   []Exchange // of a failed case: what was asked and answered
}

// Report is what a run of the suite found.
type Report struct {
	Description ports.Description
	Results     []Result
}

// Run runs the suite as subtests, topic by topic.
func Run(t *testing.T, s Subject) {
	t.Helper()
	d, err := describe(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		t.Run(cases[i].Path(), func(t *testing.T) {
			t.Parallel()
			switch r := try(t.Context(), &s, &d, &cases[i]); r.Outcome {
			case Passed:
			case Failed:
				t.Errorf("%s\n%s\n%s", cases[i].Must, strings.Join(r.Reason, "\n"), traced(r.Trace))
			default:
				t.Skipf("%s: %s", r.Outcome, strings.Join(r.Reason, "; "))
			}
		})
	}
}

// Check runs the cases whose path matches a pattern (a topic, "topic/case", or with * as in path.Match; "" for all), one
// after the other, and tells each result as it comes.
func Check(ctx context.Context, s Subject, pattern string, tell func(Result)) (*Report, error) {
	chosen, err := choose(pattern)
	if err != nil {
		return nil, err
	}
	report := &Report{}
	if report.Description, err = describe(ctx, &s); err != nil {
		return nil, err
	}
	for _, c := range chosen {
		if err := ctx.Err(); err != nil {
			return report, err
		}
		r := try(ctx, &s, &report.Description, c)
		report.Results = append(report.Results, r)
		tell(r)
	}
	return report, nil
}

func choose(pattern string) (chosen []*Case, _ error) {
	for i := range cases {
		c := &cases[i]
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

// describe asks the backend what it is, with nothing in it.
func describe(ctx context.Context, s *Subject) (ports.Description, error) {
	dir, err := os.MkdirTemp("", "hf-suite-")
	if err != nil {
		return ports.Description{}, ports.Wrap(ports.Internal, "conformance", err)
	}
	defer os.RemoveAll(dir)
	b, err := s.Open(ctx, configuration(s, dir, "describe"))
	if err != nil {
		return ports.Description{}, fmt.Errorf("open the backend: %w", err)
	}
	defer b.Close()
	d, err := b.Describe(ctx)
	if err == nil && d.Powers == nil {
		d.Powers = ports.PowersOf(b)
	}
	return d, err
}

// exempt says why a case is left out, if it is.
func exempt(s *Subject, d *ports.Description, c *Case) (Outcome, string) {
	for _, power := range c.Needs {
		if !slices.Contains(d.Powers, power) {
			return NotOffered, "it does not declare " + power
		}
	}
	for _, f := range c.Of {
		if !slices.Contains(d.Families, f) {
			return NotOffered, "it does not keep the family " + string(f)
		}
	}
	for _, o := range d.OptOuts {
		if o.Of == c.Topic || o.Of == c.Path() {
			return OptedOut, o.Reason
		}
	}
	if c.Kills && s.Kill == nil {
		return Untried, "nothing here can kill it"
	}
	return "", ""
}
