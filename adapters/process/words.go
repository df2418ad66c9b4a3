package process

import (
	"slices"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// lastLines is how many lines of a plugin are kept for its obituary, and maxWords how much of each.
const (
	lastLines = 20
	maxWords  = 400
)

// words is what a program says on stderr: into the log, and the last of it kept.
type words struct {
	log *allowance

	mu    sync.Mutex
	last  []string
	panic string // the line that says why it dies; the stack behind it would push it out
}

// take is the emit of lines.
func (w *words) take(line []byte, cut int) {
	if len(line) == 0 {
		return
	}
	e := readEntry(line, cut)
	w.mu.Lock()
	if isPanic(e.message) {
		w.panic = e.message
	}
	dying := w.panic != ""
	text := e.String()
	if len(text) > maxWords {
		text = shown(text[:maxWords]) + "…"
	}
	if len(w.last) == lastLines {
		w.last = slices.Delete(w.last, 0, 1)
	}
	w.last = append(w.last, text)
	w.mu.Unlock()
	if dying && len(e.args) == 0 {
		e.level = hclog.Error
	}
	w.log.line(e.level, e.message, e.args...)
}

// said gives the last lines, and the line about a panic first.
func (w *words) said() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said := slices.Clone(w.last)
	if w.panic != "" && !slices.Contains(said, w.panic) {
		said = append([]string{w.panic}, said...)
	}
	return said
}
