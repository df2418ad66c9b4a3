package beacon

import (
	"strings"
	"testing"

	"holdfast/ports"
)

// The host gave up the first Put and sent the second one, while the first still goes on by itself.
func TestAPutWritesNoRecordThatALaterOneHas(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		later func(w ports.Work, do act) (ports.WorkAnswer, error) // what becomes of the later one
		code  ports.Code                                           // of the first
	}{
		"which is in":         {func(w ports.Work, do act) (ports.WorkAnswer, error) { return do(w.Settings) }, ""},
		"which had no answer": {doneAndLost, ports.Unavailable},
		"which failed, and took": {func(w ports.Work, do act) (ports.WorkAnswer, error) {
			_, err := do(w.Settings)
			return ports.WorkAnswer{Failure: "ECONNRESET"}, err
		}, ports.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, p, b := settle(t)
			v.change(func() { v.list[0].MaxConcurrent = 1 })
			busy, on := make(chan struct{}), make(chan struct{})
			v.meddling(func(w ports.Work, do act) (ports.WorkAnswer, error) {
				switch {
				case strings.Contains(string(w.Settings), `"first"`):
					close(busy)
					<-on
				case strings.Contains(string(w.Settings), "Complete"):
					return c.later(w, do)
				}
				return do(w.Settings)
			})
			ended := make(chan error, 1)
			go func() {
				_, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("first", 1, ""), item("w", 2, `,"Status":"Pending"`)}})
				ended <- err
			}()
			<-busy
			_, _ = b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 3, `,"Status":"Complete"`)}})
			close(on)
			if err := <-ended; ports.CodeOf(err) != c.code {
				t.Errorf("the first Put ended with %v, want %q", err, c.code)
			}
			if got := string(p.Holds().Items["w"]); !strings.Contains(got, "Complete") {
				t.Errorf("the later state is gone: %s", got)
			}
		})
	}
}

func TestNothingIsRememberedOfPutsThatNoRunningOneCanComeBehind(t *testing.T) {
	t.Parallel()
	turns, at := newTurns(), place{ports.KindItem, "w", 0}
	first, second := turns.begin(), turns.begin()
	turns.came(second, at, true)
	turns.end(second)
	if is, done := turns.passed(first, at); !is || !done {
		t.Errorf("the first one is passed: %v, by one that is in: %v", is, done)
	}
	turns.end(first)
	if len(turns.last) > 0 || len(turns.running) > 0 {
		t.Errorf("%d records and %d Puts are remembered", len(turns.last), len(turns.running))
	}
}
