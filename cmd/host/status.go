package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/adapters/mesh"
	"holdfast/core"
	"holdfast/ports"
)

// statusCommand is `holdfast status`.
type statusCommand struct {
	JSON   bool `name:"json" help:"The host's own answer."`
	Counts bool `help:"Also how many records the local store has; that may take a moment."`
}

// hostStatus is the answer of GET /v1/status.
type hostStatus struct {
	core.Status
	Survey      *ports.Survey
	SurveyFault string
	Hub         *mesh.Status       // nil: no beacon is let in
	Joined      *mesh.MemberStatus // nil: no hub is joined
}

func (c *client) status(ctx context.Context, counts bool) (s hostStatus, answer []byte, err error) {
	answer, err = c.get(ctx, "/v1/status?counts="+strconv.FormatBool(counts), &s)
	return s, answer, err
}

func (c statusCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	s, answer, err := host.status(in.ctx, c.Counts)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(in.stdout, answer)
	}
	state := "ready"
	if !s.Ready {
		state = "not ready: " + s.Detail
	}
	fmt.Fprintf(in.stdout, "holdfast %s, up %s, ack %s: %s\n\n", clean(cmp.Or(s.Version, "of unknown version")), clean(s.Uptime), clean(string(s.Ack)), clean(state))
	families := newTable(in.stdout, "FAMILY", "HEAD", "BACKLOG", "OLDEST", "JOURNAL", "FREE", "ACCEPTED", "REFUSED", "SET ASIDE", "LOST")
	for i := range s.Families {
		familyRow(families, &s.Families[i])
	}
	if err := families.flush(); err != nil {
		return err
	}
	for i := range s.Families {
		earlyLine(in.stdout, &s.Families[i])
		foreignLine(in.stdout, &s.Families[i])
	}
	fmt.Fprintln(in.stdout)
	if err := backendTable(in.stdout, s.Backends); err != nil {
		return err
	}
	if concerns(s.Assignments) {
		fmt.Fprintln(in.stdout)
		if err := assignmentTable(in, s.Assignments); err != nil {
			return err
		}
	}
	if h := s.Hub; h != nil && h.Beacons > 0 {
		fmt.Fprintf(in.stdout, "\nbeacons: %d of %d connected; works: %d underway, %d wait, %d done, %d failed, %d out of time\n",
			h.Online, h.Beacons, h.Underway, h.Waiting, h.Completed, h.Failed, h.TimedOut)
	}
	if s.Joined != nil && s.Joined.Detail == "" { // else it stands among the notices
		fmt.Fprintf(in.stdout, "\nhub %s since %s, %s answered\n", clean(hubText(s.Joined)), moment(s.Joined.Since), counted(int64(s.Joined.Taken), "call"))
	}
	if c.Counts {
		fmt.Fprintln(in.stdout)
		fmt.Fprintln(in.stdout, surveyText(&s))
	}
	for _, notice := range s.Notices {
		fmt.Fprintf(in.stdout, "\n! %s\n", clean(notice))
	}
	return nil
}

func familyRow(t table, f *core.FamilyStatus) {
	oldest, journal := "", sizeText(f.Journal.Bytes)+" of "+sizeText(f.Journal.Limit)
	if f.Backlog > 0 {
		oldest = ageText(time.Duration(f.OldestMs) * time.Millisecond)
	}
	if f.Journal.Full {
		journal += ", full"
	}
	var lost uint64
	for _, span := range f.Lost {
		lost += span.To - span.From + 1
	}
	t.row(string(f.Family), number(f.Head), number(f.Backlog), oldest, journal, sizeText(f.Journal.Free),
		number(f.Writes.Accepted), number(f.Writes.Refused), strconv.Itoa(f.SetAside), number(lost))
}

// earlyLine tells of a hub's writes that came before their items, where there were some.
func earlyLine(out io.Writer, f *core.FamilyStatus) {
	w := &f.Writes
	if w.EarlyWaiting+w.EarlyApplied+w.EarlyDropped > 0 {
		fmt.Fprintf(out, "\n%s, early writes of a hub: %d wait for their items, %d had theirs come, %d were dropped\n", f.Family, w.EarlyWaiting, w.EarlyApplied, w.EarlyDropped)
	}
}

// foreignLine tells of writes over what another host had changed last, where there were some.
func foreignLine(out io.Writer, f *core.FamilyStatus) {
	if n := f.Writes.Foreign; n > 0 {
		fmt.Fprintf(out, "\n%s, another host writes the same records: %d of its changes were written over\n", f.Family, n)
	}
}

func number(n uint64) string { return strconv.FormatUint(n, 10) }

func surveyText(s *hostStatus) string {
	if s.Survey == nil {
		return "counts: " + clean(s.SurveyFault)
	}
	var parts []string
	for _, kind := range ports.Kinds {
		parts = append(parts, counted(s.Survey.Counts[kind], strings.ToLower(string(kind))))
	}
	text := strings.Join(parts, ", ") + "; " + sizeText(s.Survey.Bytes) + " on disk"
	if s.Survey.Partial {
		text = "at least " + text
	}
	return strings.Replace(text, "workitem", "work item", 1)
}

// backendsCommand is `holdfast backends`.
type backendsCommand struct {
	JSON bool `name:"json" help:"As a JSON list."`
}

func (c backendsCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var s struct{ Backends []core.BackendStatus }
	answer, err := host.get(in.ctx, "/v1/backends", &s)
	if err != nil {
		return err
	}
	if c.JSON {
		return printPart(in, answer, "Backends")
	}
	if err := backendTable(in.stdout, s.Backends); err != nil {
		return err
	}
	for _, b := range s.Backends {
		if len(b.Words) > 0 {
			fmt.Fprintf(in.stdout, "\nlast words of %s:\n", clean(b.Name))
		}
		for _, line := range b.Words {
			fmt.Fprintf(in.stdout, "  %s\n", clean(line))
		}
	}
	return nil
}

func backendTable(out io.Writer, backends []core.BackendStatus) error {
	t := newTable(out, "BACKEND", "KIND", "STATE", "SINCE", "STARTS", "DETAIL")
	followers := newTable(out, "FOLLOWER", "FAMILY", "STATE", "PHASE", "POSITION", "BEHIND", "FOR", "COPIED", "UNSETTLED", "DETAIL")
	following := false
	for i := range backends {
		b := &backends[i]
		name, detail := b.Name, sentence(b.Detail, b.Remedy)
		if b.Local {
			name += " (local)"
		}
		for i := range b.Followers {
			followerRow(followers, b.Name, &b.Followers[i])
			following, detail = true, "" // it stands with the family that it is about
		}
		t.row(name, b.Kind, b.State, moment(b.Since), strconv.Itoa(b.Starts), sentence(detail, lastError(b)))
	}
	if err := t.flush(); err != nil || !following {
		return err
	}
	fmt.Fprintln(out)
	return followers.flush()
}

// lastError is what went wrong last, such as the death of a process that runs again, unless the rest says so already.
func lastError(b *core.BackendStatus) string {
	told := strings.Contains(b.Detail, b.LastError) ||
		slices.ContainsFunc(b.Followers, func(f core.FollowerStatus) bool { return strings.Contains(f.Detail, b.LastError) })
	if told {
		return ""
	}
	return "last error " + moment(b.LastErrorAt) + ": " + brief(b.LastError, 500)
}

func followerRow(t table, backend string, f *core.FollowerStatus) {
	phase, age, last := f.Phase, "", f.LastError
	if f.Suspect {
		phase += ", suspect"
	}
	if f.BehindMs > 0 {
		age = ageText(time.Duration(f.BehindMs) * time.Millisecond)
	}
	if last == f.Detail {
		last = ""
	}
	if last != "" {
		last = "last error " + moment(f.LastErrorAt) + ": " + brief(last, 300)
	}
	t.row(backend, string(f.Family), f.State, phase, number(f.Position), number(f.Behind), age, number(f.Copied), unsettledText(f), sentence(f.Detail, f.Remedy, last))
}

// unsettledText is "2 refused, 1 in doubt", "" for none.
func unsettledText(f *core.FollowerStatus) string {
	var parts []string
	for _, k := range []struct {
		n    int
		what string
	}{{f.Unsettled, "refused"}, {f.InDoubt, "in doubt"}, {f.Discarded, "given up"}} {
		if k.n > 0 {
			parts = append(parts, strconv.Itoa(k.n)+" "+k.what)
		}
	}
	return strings.Join(parts, ", ")
}

// sentence joins what is to be said, without what is empty.
func sentence(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), "; ")
}
