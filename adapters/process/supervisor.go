//go:build unix

package process

import (
	"context"
	"time"

	"holdfast/ports"
)

// supervise keeps one child running after the other until ctx ends.
func (p *Process) supervise(ctx context.Context) {
	defer close(p.finished)
	defer p.leaveRunDir()
	failures := 0
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
		if ran >= p.timing.healthy {
			failures = 0
		}
		failures++
		p.await(ctx, err, failures, ran > 0, before)
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
	return launch(ctx, &p.spec, p.log, &p.timing)
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
	p.log.Info("plugin started", "pid", c.pid(), "kind", c.description.Kind, "version", c.description.Version, "took", time.Since(c.started).Round(time.Millisecond).String())
	p.change(func(s *Status) {
		s.State, s.Running, s.PID, s.Version, s.Detail, s.Words = Running, true, c.pid(), c.description.Version, "", nil
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
	c.discard(&p.timing)
	if blame != "" {
		err = ports.Errorf(ports.BackendGone, "", "the plugin was restarted: %s", blame)
	}
	p.change(func(s *Status) { s.Running, s.PID = false, 0 })
	return err
}

// letGo forgets a child that is gone.
func (p *Process) letGo() {
	p.mu.Lock()
	p.held = nil
	p.mu.Unlock()
}

// await waits before the next launch: as the backoff says, until Retry, or until the executable is another. A child that
// ran and died for the first time is followed at once.
func (p *Process) await(ctx context.Context, why error, failures int, ran bool, before map[string]sight) {
	wait, givenUp := p.timing.backoff(failures, ports.CodeOf(why).Permanent())
	if ran && failures == 1 {
		wait, givenUp = 0, false
	}
	next := time.Now().Add(wait)
	reason, words := brief(why)
	p.change(func(s *Status) {
		s.State, s.NextTry = Restarting, next
		s.Detail, s.Words = reason+"; tried again at "+next.Format(time.TimeOnly), words
		if givenUp {
			s.State = GivenUp
		}
	})
	p.log.Warn("plugin down", "error", reason, "failures", failures, "next_try_in", wait.Round(time.Millisecond).String())
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
				p.log.Info("the plugin's file changed")
				return
			}
		}
	}
}
