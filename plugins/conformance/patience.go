package conformance

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"holdfast/ports"
)

// within gives a call a deadline and does not wait for it for ever: a call that hangs is given up, and one that panics is an
// error, so that the suite goes on. grace is what it may take beyond its context's end.
func within[T any](ctx context.Context, patience, grace time.Duration, call func(ctx context.Context) (T, error)) (T, error) {
	type answer struct {
		value T
		err   error
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if p := recover(); p != nil {
				a.err = &misbehaved{what: fmt.Sprintf("it panicked: %v\n%s", p, debug.Stack())}
			}
			answers <- a
		}()
		a.value, a.err = call(limited)
	}()
	var a answer
	select {
	case a = <-answers:
	case <-limited.Done():
		select {
		case a = <-answers:
		case <-time.After(grace):
			took := time.Since(began).Round(time.Millisecond)
			return a.value, &misbehaved{silent: true, what: fmt.Sprintf("it does not return; it was given up after %s, which is %s after its context ended", took, grace)}
		}
	}
	if a.err != nil && ctx.Err() == nil && limited.Err() != nil {
		return a.value, &misbehaved{silent: true, what: fmt.Sprintf("it had no answer within %s: %v", patience, a.err)}
	}
	return a.value, a.err
}

// misbehaved is the error of a call that no backend may end with, whatever the case expects.
type misbehaved struct {
	what   string
	silent bool // it had no answer in time
}

func (m *misbehaved) Error() string { return m.what }

func (m *misbehaved) As(target any) bool {
	e, ok := target.(**ports.Error)
	if ok {
		*e = ports.Errorf(ports.Internal, "", "%s", m.what)
	}
	return ok
}
