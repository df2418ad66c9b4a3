package httpapi

import (
	"context"
	"io"
	"net/http"
	"time"
)

// streamIdle is how long a stream may wait for its next bytes.
const streamIdle = 5 * time.Minute

// pace is the body of a stream with a time for every read: some minutes while nothing hangs on it, and a fixed moment while a
// line holds a part of the budget. The end of stop interrupts it.
type pace struct {
	io.ReadCloser
	deadlines *http.ResponseController
	stop      context.Context
	until     time.Time // zero: every read has its own time
}

func (p *pace) Read(b []byte) (int, error) {
	until := p.until
	if until.IsZero() {
		until = time.Now().Add(streamIdle)
	}
	_ = p.deadlines.SetReadDeadline(until)
	if p.stop.Err() != nil { // it may have ended before this deadline took the place of its own
		p.interrupt()
	}
	return p.ReadCloser.Read(b)
}

func (p *pace) interrupt() { _ = p.deadlines.SetReadDeadline(time.Unix(1, 0)) }
