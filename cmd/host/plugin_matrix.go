package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/adapters/process"
	"holdfast/plugins/conformance"
)

// matrix shows the results of a check as they come, topic by topic, and what is wrong at the end.
type matrix struct {
	in       *invocation
	verbose  bool
	json     bool
	spec     *process.Spec
	of       int // cases; 0 when some of them are asked for
	width    int // of a topic's name
	terminal *os.File

	told  []told
	topic []told // the results of the topic at hand
}

// told is the result of one case, with what the plugin said meanwhile.
type told struct {
	conformance.Result

	lines []string
}

func newMatrix(in *invocation, c pluginCheck, spec *process.Spec, cases []conformance.Case) *matrix {
	m := &matrix{in: in, verbose: c.Verbose, json: c.JSON, spec: spec, of: len(cases), terminal: in.terminal()}
	if c.Cases != "" {
		m.of = 0
	}
	for _, k := range cases {
		m.width = max(m.width, len(k.Topic))
	}
	m.progress()
	return m
}

// progress shows how far it is, to a person.
func (m *matrix) progress() {
	switch {
	case m.terminal == nil:
	case m.of > 0:
		fmt.Fprintf(m.terminal, "%s%d of %d cases", clearLine, len(m.told), m.of)
	default:
		fmt.Fprintf(m.terminal, "%s%s", clearLine, counted(int64(len(m.told)), "case"))
	}
}

// close takes the progress away and shows the last topic.
func (m *matrix) close() {
	if m.terminal != nil {
		fmt.Fprint(m.terminal, clearLine)
	}
	m.flush()
}

func (m *matrix) tell(r conformance.Result, lines []string) {
	if len(m.topic) > 0 && m.topic[0].Case.Topic != r.Case.Topic {
		m.close()
	}
	one := told{r, lines}
	m.told, m.topic = append(m.told, one), append(m.topic, one)
	m.progress()
}

// flush prints the topic that is done: "put       11 passed, 1 failed; 2 opted out: it keeps no positions".
func (m *matrix) flush() {
	topic := m.topic
	m.topic = nil
	if m.json || len(topic) == 0 {
		return
	}
	var parts []string
	for _, o := range []conformance.Outcome{conformance.Passed, conformance.Failed} {
		if n := len(outcomes(topic, o)); n > 0 {
			parts = append(parts, strconv.Itoa(n)+" "+string(o))
		}
	}
	line := strings.Join(parts, ", ")
	for _, o := range []conformance.Outcome{conformance.OptedOut, conformance.NotOffered, conformance.Untried} {
		for _, group := range byReason(outcomes(topic, o)) {
			line = sentence(line, fmt.Sprintf("%d %s: %s", len(group), o, strings.Join(group[0].Reason, ", ")))
		}
	}
	fmt.Fprintf(m.in.stdout, "%-*s  %s\n", m.width, clean(topic[0].Case.Topic), clean(line))
	if m.verbose {
		m.each(topic)
	}
}

// each prints the cases of a topic.
func (m *matrix) each(topic []told) {
	for _, t := range topic {
		note := strings.Join(t.Reason, "; ")
		if t.Outcome == conformance.Passed {
			note = t.Took.Round(time.Millisecond).String()
		}
		fmt.Fprintf(m.in.stdout, "  %-11s %s: %s (%s)\n", t.Outcome, t.Case.Name, t.Case.Must, brief(note, 200))
	}
}

func outcomes(list []told, o conformance.Outcome) []told {
	return slices.DeleteFunc(slices.Clone(list), func(t told) bool { return t.Outcome != o })
}

// byReason puts those together that have one reason, in the order of the first of each.
func byReason(list []told) (groups [][]told) {
	for _, t := range list {
		i := slices.IndexFunc(groups, func(g []told) bool { return slices.Equal(g[0].Reason, t.Reason) })
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// end tells of each failure, and gives the line to paste.
func (m *matrix) end(r *conformance.Report) error {
	if m.json {
		return m.printJSON(r)
	}
	m.failures()
	_, err := fmt.Fprintf(m.in.stdout, "\n%s\n", clean(badge(r)))
	return err
}

// What is shown of a failed case unless everything is asked for: its last calls, the beginning of what went in and out, and
// the first of what is wrong.
const (
	shownCalls   = 3
	shownRunes   = 1500
	shownReasons = 12
)

func (m *matrix) failures() {
	for _, t := range outcomes(m.told, conformance.Failed) {
		m.failure(&t)
	}
}

func (m *matrix) failure(t *told) {
	out := m.in.stdout
	fmt.Fprintf(out, "\nfailed %s: %s\n", t.Case.Path(), clean(t.Case.Must))
	reasons := strings.Split(strings.Join(t.Reason, "\n"), "\n")
	hint := fmt.Sprintf("--run %s -v", t.Case.Path())
	if more := len(reasons) - shownReasons; more > 0 && !m.verbose {
		reasons = append(reasons[:shownReasons], fmt.Sprintf("and %s more (%s)", counted(int64(more), "line"), hint))
	}
	fmt.Fprint(out, cleanLines(indented(reasons)))
	calls := t.Trace
	if hidden := len(calls) - shownCalls; hidden > 0 && !m.verbose {
		calls = calls[hidden:]
		fmt.Fprintf(out, "  its last calls (all %d: %s):\n", len(t.Trace), hint)
	} else if len(calls) > 0 {
		fmt.Fprint(out, "  its calls:\n")
	}
	for _, e := range calls {
		m.call(&e)
	}
	if len(t.lines) > 0 {
		fmt.Fprint(out, "  what the plugin said last:\n")
	}
	for _, line := range t.lines {
		fmt.Fprintf(out, "    %s\n", clean(line))
	}
}

func (m *matrix) call(e *conformance.Exchange) {
	fmt.Fprintf(m.in.stdout, "    %s\n", clean(e.Call))
	for _, side := range []struct{ what, text string }{{"asked", e.Request}, {"answered", e.Answer}, {"refused", e.Err}} {
		limit := shownRunes
		if m.verbose {
			limit = len(side.text)
		}
		if side.text != "" {
			fmt.Fprintf(m.in.stdout, "      %-8s %s\n", side.what, brief(side.text, limit))
		}
	}
}

// checked is what `plugin check --json` prints.
type checkedPlugin struct {
	Kind      string        `json:"kind"`
	Version   string        `json:"version"`
	Path      string        `json:"path"`
	Args      []string      `json:"args,omitempty"`
	Badge     string        `json:"badge"`
	Certified bool          `json:"certified"`
	Passed    int           `json:"passed"`
	Failed    int           `json:"failed"`
	Cases     []checkedCase `json:"cases"`
}

type checkedCase struct {
	Topic   string              `json:"topic"`
	Name    string              `json:"name"`
	Must    string              `json:"must"`
	Outcome conformance.Outcome `json:"outcome"`
	Reason  []string            `json:"reason,omitempty"`
	TookMs  int64               `json:"tookMs"`
	Calls   []checkedCall       `json:"calls,omitempty"`
	Lines   []string            `json:"lines,omitempty"`
}

type checkedCall struct {
	Call    string `json:"call"`
	Request string `json:"request,omitempty"`
	Answer  string `json:"answer,omitempty"`
	Err     string `json:"error,omitempty"`
}

func (m *matrix) printJSON(r *conformance.Report) error {
	all := checkedPlugin{
		Kind: r.Description.Kind, Version: r.Description.Version, Path: m.spec.Path, Args: m.spec.Args,
		Badge: badge(r), Certified: r.Certified(), Passed: r.Count(conformance.Passed), Failed: r.Count(conformance.Failed), Cases: []checkedCase{},
	}
	for _, t := range m.told {
		one := checkedCase{Topic: t.Case.Topic, Name: t.Case.Name, Must: t.Case.Must, Outcome: t.Outcome, Reason: t.Reason, TookMs: t.Took.Milliseconds()}
		if t.Outcome == conformance.Failed {
			one.Lines = t.lines
		}
		for _, e := range t.Trace {
			one.Calls = append(one.Calls, checkedCall(e))
		}
		all.Cases = append(all.Cases, one)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return printJSON(m.in.stdout, text)
}
