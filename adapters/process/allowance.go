package process

import (
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
)

// A plugin may log allowedLines in each allowedTime; a flood of its is not the host's.
const (
	allowedLines = 1000
	allowedTime  = 5 * time.Second
)

// allowance is what a plugin may still log.
type allowance struct {
	log hclog.Logger
	now func() time.Time

	mu      sync.Mutex
	since   time.Time // the beginning of the present allowedTime
	used    int
	dropped int
}

func newAllowance(log hclog.Logger) *allowance { return &allowance{log: log, now: time.Now} }

// line logs one line, or counts it.
func (a *allowance) line(level hclog.Level, message string, args ...any) {
	if level >= a.log.GetLevel() && a.take() {
		a.log.Log(level, message, args...)
	}
}

func (a *allowance) take() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := a.now(); now.Sub(a.since) >= allowedTime {
		a.tell()
		a.since, a.used = now, 0
	}
	if a.used == allowedLines {
		a.dropped++
		return false
	}
	a.used++
	return true
}

// end tells what was dropped last.
func (a *allowance) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.tell()
}

func (a *allowance) tell() {
	if a.dropped > 0 {
		a.log.Warn("the plugin logs too much, lines were left out", "count", a.dropped)
		a.dropped = 0
	}
}
