//go:build unix

package process

import (
	"context"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// supervise keeps one child running after the other until ctx ends.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.finished)
	defer p.leaveRunDir()
	waits := patience{base: p.timing.base, limit: p.timing.limit, healthy: p.timing.healthy}
	for ctx.Err() == nil {
		before := p.spec.look()
		p.change(func(s *Status) { s.State, s.NextTry = Starting, time.Time{} })
		ran := time.Duration(0)
		c, err := p.launch(ctx)
		if err == nil {
			err = p.live(ctx, c)
			ran = time.Since(c.started)
		} else {
			p.tellFirst(err)
		}
		if ctx.Err() != nil {
			break
		}
		wait, parked := waits.failed(ran, ports.CodeOf(err).Permanent())
		if ran >= worthTelling {
			p.told = told{}
		}
		p.fail(err, waits.failures, wait, parked)
		p.await(ctx, wait, before)
	}
	p.change(func(s *Status) { s.State, s.NextTry = Stopped, time.Time{} })
}

// launch makes the next child; a Process without a run directory of its caller's makes one when it first can.
func (p *Process) launch(ctx context.Context) (*child, error) {
	if p.spec.RunDir == "" {
		dir, err := OpenRunDir("")
		if err != nil {
			return nil, err
		}
		p.ownDir, p.spec.RunDir = dir, dir.Path()
	}
	return launch(ctx, &p.spec, p.log, &p.timing, func(at step) {
		p.change(func(s *Status) {
			if s.State == Starting {
				s.Detail = "still waits for " + string(at)
			}
		})
	})
}

func (p *Process) leaveRunDir() {
	if p.ownDir != nil {
		_ = p.ownDir.Close()
	}
}

// tellFirst ends Await. Only the first launch is told.
func (p *Process) tellFirst(err error) {
	select {
	case <-p.first:
	default:
		p.outcome = err
		close(p.first)
	}
}

// live has a child at work until it dies (the error says how) or ctx ends; then it is stopped.
func (p *Process) live(ctx context.Context, c *child) error {
	gone, vanish := context.WithCancel(context.Background())
	defer vanish()
	stopWatch := make(chan struct{})
	defer close(stopWatch)
	go func() { // the moment of death, for the calls that are under way
		select {
		case <-c.program.exited:
			vanish()
		case <-stopWatch:
		}
	}()
	p.mu.Lock()
	p.present, p.held, p.gone, p.blame = c, c, gone, ""
	p.description = &c.description
	p.mu.Unlock()
	level := hclog.Info
	if p.told.repeats > 1 {
		level = hclog.Debug
	}
	p.log.Log(level, "plugin started", "pid", c.pid(), "kind", c.description.Kind, "version", c.description.Version, "took", time.Since(c.started).Round(time.Millisecond).String())
	p.change(func(s *Status) {
		s.State, s.Running, s.PID, s.Detail = Running, true, c.pid(), ""
		s.Version, s.Speaks = c.description.Version, c.host.NegotiatedVersion()
		s.Starts++
	})
	p.tellFirst(nil)

	err := c.watch(ctx, &p.timing, func(silence time.Duration) {
		detail := ""
		if silence > 0 {
			detail = "has answered no health check for " + silence.Round(time.Second).String()
		}
		if p.Status().Detail != detail {
			p.change(func(s *Status) { s.Detail = detail })
		}
	})

	p.mu.Lock()
	p.present = nil
	stopping, blame, killed := p.stopping, p.blame, p.killed
	p.mu.Unlock()
	defer p.letGo()
	if err == nil {
		if killed {
			c.discard(&p.timing)
		} else {
			c.stop(stopping, &p.timing)
		}
		p.log.Info("plugin stopped", "pid", c.pid(), "ran", time.Since(c.started).Round(time.Millisecond).String())
		p.change(func(s *Status) { s.Running, s.PID, s.Detail = false, 0, "" })
		return nil
	}
	p.change(func(s *Status) { s.Running, s.PID = false, 0 })
	c.discard(&p.timing)
	if blame != "" {
		err = &obituary{brief: ports.Errorf(ports.BackendGone, "", "the plugin was restarted: %s", blame), words: c.program.words.said()}
	}
	return err
}

// letGo forgets a child that is gone.
func (p *Process) letGo() {
	p.mu.Lock()
	p.held = nil
	p.mu.Unlock()
}

// worthTelling is how long a plugin must have run for its end to be news, also when it is like the one before.
const worthTelling = 10 * time.Second

// fail tells of a failure: in the status each time, in the log once. What only happens again is for debugging, or a plugin
// that cannot start would fill the log for as long as nobody cares.
func (p *Process) fail(why error, failures int, wait time.Duration, parked bool) {
	now := time.Now()
	next := now.Add(wait)
	reason, words := brief(why)
	p.change(func(s *Status) {
		s.State, s.NextTry = Restarting, next
		s.Detail, s.Words = reason+"; tried again at "+next.Format(time.TimeOnly), words
		s.Died, s.DiedAt = reason, now
		if parked {
			s.State = GivenUp
		}
	})
	level, message := p.tell(reason, failures, parked)
	p.log.Log(level, message, "error", reason, "failures", failures, "next_try_in", wait.Round(time.Millisecond).String())
}

// tell decides how the log is told of a failure.
func (p *Process) tell(reason string, failures int, parked bool) (hclog.Level, string) {
	if failures == 1 {
		p.told = told{} // it had been healthy
	}
	before := p.told
	p.told = told{reason: reason, repeats: before.repeats + 1, parked: parked}
	switch {
	case before.reason == "" && p.Status().Starts == 0:
		return hclog.Error, "plugin does not start; the host serves without it and tries again"
	case before.reason != reason:
		p.told.repeats = 0
		return hclog.Warn, "plugin down"
	case parked && !before.parked:
		return hclog.Warn, "plugin given up; it is tried rarely, and at once when its file changes"
	case p.told.repeats == 1:
		return hclog.Warn, "plugin down again; it is started on and on, what repeats itself is in the status and not in the log"
	}
	return hclog.Debug, "plugin down"
}

// told is the failure that the log has.
type told struct {
	reason  string
	repeats int // of it
	parked  bool
}

// await waits before the next launch: until Retry, or until there is something new in the place of its files.
func (p *Process) await(ctx context.Context, wait time.Duration, before map[string]sight) {
	select { // what was asked before this failure is answered by it
	case <-p.retry:
	default:
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	looks := time.NewTicker(p.timing.look)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-p.retry:
			return
		case <-looks.C:
			if changed(before, p.spec.look()) {
				p.log.Info("the plugin's files changed")
				return
			}
		}
	}
}
