package stock

// What can go wrong with a beacon, on command. Beside these: DropSocket, Reconnect, Kill, Twin and what a Persistence can
// refuse or forget.

import (
	"context"
	"time"
)

// Fault is what goes wrong with one work.
type Fault struct {
	Delay  time.Duration // before it is done
	Undone bool          // it is not done
	Error  string        // it is reported as a failure
	Late   time.Duration // it is reported only that long after its deadline
	Mute   bool          // it is never reported
	Twice  bool          // it is reported twice
	Drop   bool          // the socket is dropped before the report, which goes over HTTP then
	Die    bool          // the beacon is killed between doing and reporting it
}

// Misbehave has choose say what goes wrong with each work from now on, in the order in which they come; nil is nothing. It must
// not ask the beacon anything.
func (b *Beacon) Misbehave(choose func(w *Work) Fault) {
	b.change(func() { b.misbehave = choose })
}

// Always is the same fault each time.
func Always(f Fault) func(*Work) Fault { return func(*Work) Fault { return f } }

// Slow takes that long for each work: with 25 ms and 4 slots, a beacon that the stock hub lost writes with.
func Slow(d time.Duration) func(*Work) Fault { return Always(Fault{Delay: d}) }

// Once is a fault of the next work only.
func Once(f Fault) func(*Work) Fault { return Nth(1, f) }

// Nth is a fault of the n-th work from now on.
func Nth(n int, f Fault) func(*Work) Fault {
	return func(*Work) Fault {
		if n--; n == 0 {
			return f
		}
		return Fault{}
	}
}

func (w *Work) deadline() time.Duration { return time.Duration(w.TimeoutMs) * time.Millisecond }

// Freeze stops the beacon as SIGSTOP does: its connections stay open, and nothing is read, answered, sent or done.
func (b *Beacon) Freeze() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen == nil && !b.dead {
		b.frozen = make(chan struct{})
	}
}

// Thaw goes on where Freeze stopped.
func (b *Beacon) Thaw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.frozen != nil {
		close(b.frozen)
		b.frozen = nil
	}
}

func (b *Beacon) isFrozen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.frozen != nil
}

// awake waits while the beacon is frozen; false says that ctx ended.
func (b *Beacon) awake(ctx context.Context) bool {
	for {
		b.mu.Lock()
		frozen := b.frozen
		b.mu.Unlock()
		if frozen == nil {
			return ctx.Err() == nil
		}
		select {
		case <-frozen:
		case <-ctx.Done():
			return false
		}
	}
}
