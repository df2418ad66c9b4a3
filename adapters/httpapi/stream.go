package httpapi

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"holdfast/core"
	"holdfast/ports"
)

// A stream is many actions in one request. One goroutine reads lines and begins each at once; the other answers in the order
// of the lines, as the promises come true. Between them stand at most windowLines lines of about windowBytes.
//
//	body --> lines --> Begin --> [ due ] --> Wait --> answer --> response
const (
	windowLines = 4096
	windowBytes = 2 << 20
)

// due is a line that was read and is not answered yet.
type due struct {
	promise Promise
	refused error // there is no promise
	bytes   int64 // of the stream's window
	held    int64 // of the budget of large records
}

type stream struct {
	api    *API
	who    caller
	source core.Source
	lines  *lines
	due    chan due
	window *semaphore.Weighted
}

// stream answers many actions, one a line.
func (a *API) stream(w http.ResponseWriter, r *http.Request, who caller, source core.Source) {
	deadlines := http.NewResponseController(w)
	_ = deadlines.EnableFullDuplex() // HTTP/2 is so by itself
	ctx, cancel := context.WithCancel(patient(r))
	defer cancel()
	stop, stopReading := context.WithCancel(ctx)
	defer stopReading()
	defer context.AfterFunc(a.draining, stopReading)()
	timed := &pace{ReadCloser: r.Body, deadlines: deadlines, stop: stop}
	defer context.AfterFunc(stop, timed.interrupt)()
	r.Body = timed
	body, _, done, err := inflate(r)
	if err != nil {
		refuse(w, err)
		return
	}
	defer done()

	s := &stream{
		api: a, who: who, source: source, lines: a.newLines(body, timed),
		due: make(chan due, windowLines), window: semaphore.NewWeighted(windowBytes),
	}
	defer s.lines.close()

	h := w.Header()
	h.Set("Content-Type", typeNDJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	var reader sync.WaitGroup
	reader.Go(func() { s.read(stop) })
	answered := false
	defer func() { // also after a panic: nothing of a stream goes on without its request
		if !answered {
			cancel()
			s.settle(ctx)
		}
		reader.Wait()
	}()
	if err := s.answer(ctx, w, deadlines); err != nil {
		a.log.Debug("stream: the client does not take its answers", "error", err)
		return
	}
	answered = true
}

// read begins every line.
func (s *stream) read(ctx context.Context) {
	defer close(s.due)
	defer func() {
		if fault := recover(); fault != nil {
			s.api.log.Error("stream: a line was not taken in", "line", s.lines.line, "panic", fault, "stack", string(debug.Stack()))
			s.due <- due{refused: ports.Errorf(ports.Internal, "", "line %d could not be taken in", s.lines.line)}
		}
	}()
	for {
		line, held, err := s.lines.next()
		next := due{held: held}
		fault, ofLine := errors.AsType[lineError](err)
		switch {
		case err == nil:
			next.bytes = min(int64(len(line)), windowBytes)
			if s.window.Acquire(ctx, next.bytes) != nil {
				s.api.budget.Release(held)
				return
			}
			next.promise, next.refused = s.begin(line)
		case ofLine:
			next.refused = fault.error
		default:
			if !errors.Is(err, io.EOF) && ctx.Err() == nil {
				s.due <- due{refused: broken(err)}
			}
			return
		}
		s.due <- next // answer and settle both take all that is due
	}
}

func (s *stream) begin(line []byte) (Promise, error) {
	call, err := core.ParseCall(line)
	if err == nil {
		err = mayCall(s.who, call.Action)
	}
	if err != nil {
		return nil, err
	}
	call.Source = s.source
	call.Source.Line = s.lines.line
	return s.api.host.Begin(call), nil
}

// finish waits for a line's answer and gives back what the line held.
func (s *stream) finish(ctx context.Context, d due) core.Answer {
	defer s.window.Release(d.bytes)
	defer s.api.budget.Release(d.held)
	if d.refused != nil {
		return core.Refusal(d.refused)
	}
	return d.promise.Wait(ctx)
}

// answer writes the answers in order. It sends them on whenever it would wait, for a line or for its answer, and not line by line.
func (s *stream) answer(ctx context.Context, w http.ResponseWriter, deadlines *http.ResponseController) error {
	out := answerBuffers.Get().(*bufio.Writer)
	out.Reset(patientWriter{w, deadlines})
	defer func() {
		out.Reset(nil)
		answerBuffers.Put(out)
	}()
	begun := false // nothing is sent before the first answer, since the body may not be asked for yet
	for {
		var next due
		var open bool
		select {
		case next, open = <-s.due:
		default:
			if begun {
				if err := flush(out, deadlines); err != nil {
					return err
				}
			}
			next, open = <-s.due
		}
		if !open {
			return out.Flush()
		}
		if out.Buffered() > 0 && next.refused == nil && !next.promise.Due() {
			if err := flush(out, deadlines); err != nil {
				return err
			}
		}
		if err := writeLine(out, s.finish(ctx, next)); err != nil {
			return err
		}
		begun = true
	}
}

// settle ends what nobody reads the answers of: all of it stays begun.
func (s *stream) settle(ctx context.Context) {
	for next := range s.due {
		s.finish(ctx, next)
	}
}

var answerBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, 8<<10) }}

func writeLine(out *bufio.Writer, answer core.Answer) error {
	_, err := out.Write(append(answer.AppendJSON(out.AvailableBuffer()), '\n'))
	return err
}

func flush(out *bufio.Writer, deadlines *http.ResponseController) error {
	if err := out.Flush(); err != nil {
		return err
	}
	return deadlines.Flush()
}

// patientWriter gives the peer some time for every write.
type patientWriter struct {
	http.ResponseWriter
	deadlines *http.ResponseController
}

func (w patientWriter) Write(p []byte) (int, error) {
	_ = w.deadlines.SetWriteDeadline(time.Now().Add(writeTimeout))
	return w.ResponseWriter.Write(p)
}
