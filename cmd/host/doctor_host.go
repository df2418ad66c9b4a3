package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"holdfast/adapters/mesh"
	"holdfast/core"
	"holdfast/internal/config"
)

// What the doctor asks the running host.

const doctorTimeout = 10 * time.Second

// host asks the running host, or looks whether one could listen. cfg is nil when only --server says where it is.
func (c *checkup) host(cfg *config.Config) {
	host, err := c.in.client()
	if err != nil {
		c.foundf(fails, "host", "%v", err)
		return
	}
	ctx, cancel := context.WithTimeout(c.in.ctx, doctorTimeout)
	defer cancel()
	s, _, err := host.status(ctx, false)
	switch {
	case errors.Is(err, errUnreachable) && c.in.Server != "":
		c.foundf(fails, "host", "%v", err)
	case errors.Is(err, errUnreachable):
		c.port(cfg)
	case err != nil:
		c.foundf(fails, "host", "%v", err)
	case !s.Ready:
		c.foundf(fails, "host", "answers at %s, but is not ready: %s", host.base, s.Detail)
		c.status(&s)
	default:
		c.foundf(fine, "host", "answers at %s, version %s, up %s", host.base, cmp.Or(s.Version, "unknown"), s.Uptime)
		c.status(&s)
	}
}

// port says whether a host could listen.
func (c *checkup) port(cfg *config.Config) {
	l, err := new(net.ListenConfig).Listen(c.in.ctx, "tcp", cfg.Listen)
	if err != nil {
		c.foundf(fails, "listen", "no host answers at %s, and another program is there or it cannot be listened at: %v", cfg.URL(), err)
		return
	}
	_ = l.Close() // it was only a trial
	c.foundf(fine, "listen", "%s is free; no host runs there (`holdfast serve` starts one)", cfg.Listen)
}

// maxBacklog and maxAge are from where on a backlog is worth a word.
const (
	maxBacklog = 1000
	maxAge     = 10 * time.Second
)

func (c *checkup) status(s *hostStatus) {
	for i := range s.Families {
		f := &s.Families[i]
		c.family(strings.ToLower(string(f.Family)), f)
	}
	for i := range s.Backends {
		b := &s.Backends[i]
		if b.Local || len(b.Followers) == 0 {
			c.backend("backend "+b.Name, b.State, b.Local, b.Detail != "", sentence(b.State, b.Detail, b.Remedy))
		}
		for i := range b.Followers {
			c.follower(b.Name, &b.Followers[i])
		}
	}
	for i := range s.Assignments {
		c.assignment(&s.Assignments[i])
	}
	if s.Joined != nil {
		c.joined(s.Joined)
	}
}

// joined judges the membership of somebody else's hub.
func (c *checkup) joined(s *mesh.MemberStatus) {
	verdict := warns
	if s.Joined() && s.Detail == "" {
		verdict = fine
	}
	c.foundf(verdict, "joined hub", "%s", hubText(s))
}

// backend judges a backend's public state. One that is needed for every write fails when it is away; one that is there may still be
// slow to answer.
func (c *checkup) backend(what, state string, needed, slow bool, words string) {
	verdict := warns
	switch {
	case state == "bootstrapped" && !slow:
		verdict = fine
	case state == "bootstrapped":
	case needed || state == "error":
		verdict = fails
	}
	c.foundf(verdict, what, "%s", words)
}

// follower tells of one family of a backend that is not the local store.
func (c *checkup) follower(backend string, f *core.FollowerStatus) {
	what := backend + " " + strings.ToLower(string(f.Family))
	behind := ""
	if f.Behind > 0 {
		behind = fmt.Sprintf("%d behind for %s", f.Behind, ageText(time.Duration(f.BehindMs)*time.Millisecond))
	}
	words := sentence(f.Phase, behind, f.Detail, f.Remedy)
	switch {
	case f.State == "unassigned":
		c.foundf(fine, what, "%s", words)
	case f.State == "bootstrapped" && (f.Suspect || f.Phase == "lagging" && time.Duration(f.BehindMs)*time.Millisecond > maxAge):
		c.foundf(warns, what, "%s", sentence(words, f.LastError))
	default:
		c.backend(what, f.State, false, false, words)
	}
	if f.Unsettled > 0 {
		c.foundf(warns, what, "%s refused; see `holdfast unsettled list --backend %s`, mend the cause, then `holdfast unsettled retry --backend %s %s --all`",
			counted(int64(f.Unsettled), "key"), backend, backend, strings.ToLower(string(f.Family)))
	}
	if f.Doubtful {
		c.foundf(warns, what, "may have records that were removed, and answers no reads; run `holdfast verify local %s` or `holdfast resync %s --exact`", backend, backend)
	}
	if f.OnlyThere != nil && *f.OnlyThere > 0 {
		c.foundf(warns, what, "%s are only there; `holdfast adopt %s` takes them in, `holdfast resync %s --exact` removes them", counted(*f.OnlyThere, "record"), backend, backend)
	}
}

func (c *checkup) family(name string, f *core.FamilyStatus) {
	switch j := &f.Journal; {
	case j.Fault != "":
		c.foundf(fails, "journal "+name, "takes no writes: %s", j.Fault)
	case j.Full:
		c.foundf(fails, "journal "+name, "is full with %s of %s; free disk space, raise journal.limit, or see why the local store does not take the backlog", sizeText(j.Bytes), sizeText(j.Limit))
	case len(j.Damaged) > 0:
		c.foundf(warns, "journal "+name, "set damaged files aside: %s; look at the disk, then delete them", strings.Join(j.Damaged, ", "))
	default:
		c.foundf(fine, "journal "+name, "%s of %s", sizeText(j.Bytes), sizeText(j.Limit))
	}
	if age := time.Duration(f.OldestMs) * time.Millisecond; f.Backlog > maxBacklog || age > maxAge {
		c.foundf(warns, "backlog "+name, "%s, the oldest %s old; the local store does not keep up, see its backend", counted(int64(f.Backlog), "write"), ageText(age))
	} else {
		c.foundf(fine, "backlog "+name, "%s", counted(int64(f.Backlog), "write"))
	}
	if f.SetAside > 0 {
		c.foundf(warns, "set aside "+name, "%s; see `holdfast unsettled list`", counted(int64(f.SetAside), "write"))
	}
	if len(f.Lost) > 0 {
		c.foundf(warns, "lost "+name, "writes were lost, see Lost in `holdfast status --json`")
	}
}
