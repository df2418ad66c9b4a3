package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"

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
}

// subject gives the suite a plugin; its lines go to log. secretive says that some of the options may not be shown.
func subject(spec process.Spec, options []byte, secretive bool, log hclog.Logger) conformance.Subject {
	return conformance.Subject{
		Options: options,
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			one := spec
			one.Name, one.Config, one.Logger, one.Trace = "plugin", c, log, &wire.Trace{}
			p, err := process.New(one)
			if err != nil {
				return nil, err
			}
			p.Start()
			if err := p.Await(ctx); err != nil {
				p.Kill()
				return nil, err
			}
			return &examined{p, one.Trace}, nil
		},
		Kill: func(b ports.Backend) { b.(*examined).Process.Kill() },
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

// logger writes into it. That the host starts and stops a plugin for every case is no news.
func (s *spoken) logger(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Level: level, Output: s, DisableTime: true,
		Exclude: func(_ hclog.Level, message string, _ ...any) bool {
			return message == "plugin started" || message == "plugin stopped"
		},
	})
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
