package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// Some orders take minutes: a verification, a copy. Their answer is a stream of lines that tell how far the work is, and a
// last one with its outcome, in the envelope that every answer has.
//
//	{"Progress":{"Family":"Queue","Looked":4000,"Changed":12}}
//	{"Available":true,"Success":true,"Copied":{...}}
//
// The work ends with its caller. Whether that one is still there, only a line shows that does not reach it: the end of a
// request's body is no sign, since a caller may close its half behind it. So a line is sent at times also when there is
// nothing new to tell.

const (
	tellEvery  = 500 * time.Millisecond // between two looks at how far the work is
	quietLooks = 4                      // looks without anything new, then the last line is sent again
	maxLasting = 4                      // works at a time
)

// lasting is one such answer.
type lasting struct {
	w    http.ResponseWriter
	out  patientWriter
	wait time.Duration // between two lines

	mu    sync.Mutex
	now   core.Progress
	news  bool
	begun bool // a line was sent
}

// last runs a work and answers with what becomes of it, under a payload key. A work that fails before a line was sent is
// answered as any order that fails.
func last[T any](a *API, w http.ResponseWriter, r *http.Request, payload string, work func(ctx context.Context, tell func(core.Progress)) (T, error)) (outcome T, err error) {
	if !a.works.TryAcquire(1) {
		err = ports.Errorf(ports.Unavailable, "", "%d verifications, copies and the like are at work already; wait for one of them", maxLasting)
		refuse(w, err)
		return outcome, err
	}
	defer a.works.Release(1)
	ctx, cancel := context.WithCancel(patient(r))
	defer cancel()
	defer context.AfterFunc(a.draining, cancel)()
	l := &lasting{w: w, out: patientWriter{w, http.NewResponseController(w)}, wait: a.tellEvery}
	stop := l.keepTelling(ctx, cancel)
	defer stop()
	outcome, err = work(ctx, l.tell)
	stop()
	if err != nil && a.draining.Err() != nil {
		err = &refusal{http.StatusServiceUnavailable, ports.Errorf(ports.Unavailable, "", stopping+"; ask again when it is back")}
	}
	l.end(payload, outcome, err)
	return outcome, err
}

// tell is what the work calls.
func (l *lasting) tell(p core.Progress) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now, l.news = p, true
}

// keepTelling sends lines until it is stopped, and calls gone when nobody takes them.
func (l *lasting) keepTelling(ctx context.Context, gone func()) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(l.wait)
		defer tick.Stop()
		for quiet := 0; ; quiet++ {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			l.mu.Lock()
			p, news := l.now, l.news
			l.news = false
			l.mu.Unlock()
			if !news && quiet < quietLooks {
				continue
			}
			quiet = 0
			if l.line(struct{ Progress core.Progress }{p}) != nil {
				gone()
				return
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// line sends one line on its way at once.
func (l *lasting) line(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	l.begin()
	if _, err = l.out.Write(append(text, '\n')); err != nil {
		return err
	}
	return l.out.deadlines.Flush()
}

func (l *lasting) begin() {
	if l.begun {
		return
	}
	l.begun = true
	h := l.w.Header()
	h.Set("Content-Type", typeNDJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
}

// end sends the outcome. Nothing tells any more when it is called.
func (l *lasting) end(payload string, outcome any, err error) {
	if err != nil && !l.begun {
		refuse(l.w, err)
		return
	}
	answer := core.Answer{Payload: payload}
	if err == nil {
		answer.Value, err = json.Marshal(outcome)
	}
	if err != nil {
		answer = core.Refusal(err)
	}
	l.begin()
	_, _ = l.out.Write(append(answer.AppendJSON(nil), '\n')) // a caller that went away is not told anything
}
