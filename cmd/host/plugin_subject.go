package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// What `plugin check` judges: a plugin that is started anew for each case, as the host starts it.

// examined is one start of it.
type examined struct {
	*process.Process

	trace *wire.Trace

	died  sync.Once
	death chan struct{} // closed when it ended and nobody had told it to; how says how
	how   string
}

// newExamined starts a plugin. What the host has to say of it the results say.
func newExamined(ctx context.Context, spec process.Spec, c ports.Configuration, voice hclog.Logger) (*examined, error) {
	e := &examined{trace: &wire.Trace{}, death: make(chan struct{})}
	spec.Name, spec.Config, spec.Voice, spec.Trace = "plugin", c, voice, e.trace
	spec.Notify = func(s process.Status) {
		if s.Died != "" && s.Starts > 0 {
			e.died.Do(func() {
				e.how = s.Died
				close(e.death)
			})
		}
	}
	p, err := process.New(spec)
	if err != nil {
		return nil, err
	}
	e.Process = p
	p.Start()
	if err := p.Await(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return e, nil
}

// deathTime is how long the host may take to see a death that a call showed.
const deathTime = 2 * time.Second

// mourn waits for the host to see a death before it is told to end the plugin: then nobody could tell how it ended by itself.
func (e *examined) mourn() {
	broke := slices.ContainsFunc(e.trace.Exchanges(), func(x wire.Exchange) bool {
		return strings.HasPrefix(x.Err, string(ports.BackendGone)+": ")
	})
	s := e.Status()
	if broke || !s.Running || errors.Is(syscall.Kill(s.PID, 0), syscall.ESRCH) {
		patience := time.NewTimer(deathTime)
		defer patience.Stop()
		select {
		case <-e.death:
		case <-patience.C:
		}
	}
}

func (e *examined) ended() string {
	select {
	case <-e.death:
		return e.how
	default:
		return ""
	}
}

func (e *examined) Close() error {
	e.mourn()
	return e.Process.Close()
}

func (e *examined) Kill() {
	e.mourn()
	e.Process.Kill()
}

// subject gives the suite a plugin; its lines go to voice. secretive says that some of the options may not be shown.
func subject(spec process.Spec, options []byte, secretive bool, voice hclog.Logger) conformance.Subject {
	return conformance.Subject{
		Options: options,
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			e, err := newExamined(ctx, spec, c, voice)
			if err != nil {
				return nil, err
			}
			return e, nil
		},
		Kill:  func(b ports.Backend) { b.(*examined).Kill() },
		Ended: func(b ports.Backend) string { return b.(*examined).ended() },
		Trace: func(b ports.Backend) (all []conformance.Exchange) {
			for _, e := range b.(*examined).trace.Exchanges() {
				if e.Call == "Configure" && secretive {
					e.Request = "(not shown: there are secrets among the options)"
				}
				all = append(all, conformance.Exchange(e))
			}
			if last := len(all) - 1; last >= 0 && all[last].Call == "Drain" { // asked by the stop, not by the case
				all = all[:last]
			}
			return all
		},
	}
}

// lastLines is how many lines of a plugin are shown with a failed case.
const lastLines = 20

// spoken keeps the last lines of a plugin.
type spoken struct {
	mu    sync.Mutex
	lines []string
}

// logger writes into it.
func (s *spoken) logger(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Level: level, Output: s, DisableTime: true})
}

var _ io.Writer = (*spoken)(nil)

func (s *spoken) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range strings.Lines(string(p)) {
		s.lines = append(s.lines, strings.TrimRight(line, "\n"))
	}
	s.lines = slices.Delete(s.lines, 0, max(0, len(s.lines)-lastLines))
	return len(p), nil
}

// take gives what was said since it was called last.
func (s *spoken) take() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = nil
	return lines
}
