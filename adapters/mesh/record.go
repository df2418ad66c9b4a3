package mesh

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"holdfast/core"
	"holdfast/ports"
)

// What outside callers have done through the hub is history like any other: it goes through the Door, as the write sequences of
// the wire contract (D.6) promise it and the stock hub does not keep it. Every start has its event and its attempt row, every
// end its patch, its event and its outcome. recordings.go says which writes they are.
//
// Recording never holds up a work: the writes wait here, in their order, until the Door has them. Only when too many wait do
// new works wait too, and are refused in the end.

// How much may wait for the Door.
const (
	maxRecords     = 50_000
	maxRecordBytes = 256 << 20
	recordBatch    = 2048
	recordPatience = 2 * time.Second // for the rest, when the hub stops
	roomPatience   = 10 * time.Second
)

// record is one write that waits for the Door.
type record struct {
	hash    string // of the work
	action  ports.Action
	build   func() []byte // its Settings
	without func() []byte // the same without what the caller or the beacon said, should the Door refuse that; nil: no use
	actor   string
	size    int64
}

// recorder hands records to the Door.
type recorder struct {
	core  Core
	log   hclog.Logger
	start string       // this start of this hub, as its items name it
	lost  atomic.Int64 // records that the Door refused for good

	mu     sync.Mutex
	queue  []record
	bytes  int64
	closed bool
	freed  chan struct{} // closed when some are done with
	more   chan struct{}
	stop   chan struct{}
}

func newRecorder(c Core, log hclog.Logger) *recorder {
	r := &recorder{core: c, log: log, freed: make(chan struct{}), more: make(chan struct{}, 1), stop: make(chan struct{})}
	if c != nil {
		r.start = c.HostID() + "/" + newGUID()
	}
	return r
}

// keeps says whether a work is recorded. The Door has the same rule; here it keeps the others out of memory too.
func (r *recorder) keeps(capability string) bool { return r.core != nil && !core.Exempt(capability) }

// room waits for a while while too much waits already, and refuses a work that would be recorded when that does not help.
func (r *recorder) room(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, roomPatience)
	defer cancel()
	for {
		r.mu.Lock()
		waiting, full, freed := len(r.queue), len(r.queue) >= maxRecords || r.bytes >= maxRecordBytes, r.freed
		r.mu.Unlock()
		if !full {
			return nil
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ports.Errorf(ports.Full, "mesh", "the history of %d writes waits to be recorded; send it again in a moment, and see `holdfast doctor`", waiting)
		}
	}
}

// put adds a record behind all others.
func (r *recorder) put(next record) {
	r.mu.Lock()
	r.queue = append(r.queue, next)
	r.bytes += next.size
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// waiting is how many records wait.
func (r *recorder) waiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.queue)
}

// close lets run end when the rest is recorded.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.closed {
		r.closed = true
		close(r.stop)
	}
}

// run hands records over until close, and then the rest, as far as the Door takes it.
func (r *recorder) run() {
	pause := time.Duration(0)
	for {
		batch := r.batch()
		if len(batch) == 0 {
			select {
			case <-r.more:
				continue
			case <-r.stop:
			}
			if r.waiting() == 0 {
				return
			}
			continue
		}
		taken := r.hand(batch)
		r.drop(taken)
		if taken == len(batch) {
			pause = 0
			continue
		}
		pause = min(max(2*pause, 50*time.Millisecond), 5*time.Second)
		select {
		case <-time.After(pause):
			continue
		case <-r.stop:
		}
		if rest := r.batch(); len(rest) > 0 && r.hand(rest) < len(rest) {
			r.lost.Add(int64(r.waiting()))
			r.log.Error("the hub stops with works that could not be recorded", "writes", r.waiting())
			return
		}
	}
}

// batch are the first records that wait.
func (r *recorder) batch() []record {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.queue[:min(len(r.queue), recordBatch)]
}

// drop takes off the first records.
func (r *recorder) drop(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range n {
		r.bytes -= r.queue[i].size
		r.queue[i] = record{}
	}
	if r.queue = r.queue[n:]; len(r.queue) == 0 {
		r.queue = nil
	}
	close(r.freed)
	r.freed = make(chan struct{})
}

// hand gives records to the Door, in order, and says how many of them are done with: durable, or refused for good. What comes
// behind one that could not be taken now is not done with, though it may have been taken: it is handed over again, and known
// again by its key and its GUID.
func (r *recorder) hand(batch []record) int {
	promises := make([]Promise, len(batch))
	for i, next := range batch {
		promises[i] = r.begin(&next, next.build())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*recordPatience)
	defer cancel()
	for i := range promises {
		answer := promises[i].Wait(ctx)
		if !answer.Failed() && answer.Situation != core.NotFound {
			continue
		}
		if answer.Situation == core.Unavailable {
			return i
		}
		if again := batch[i].without; again != nil {
			if answer = r.begin(&batch[i], again()).Wait(ctx); !answer.Failed() {
				r.log.Warn("what a work said cannot be kept; the rest of it is recorded", "work", batch[i].hash, "action", batch[i].action)
				continue
			}
		}
		r.lost.Add(1)
		r.log.Warn("a work could not be recorded", "work", batch[i].hash, "action", batch[i].action, "error", answer.Err)
	}
	return len(batch)
}

func (r *recorder) begin(next *record, settings []byte) Promise {
	return r.core.Begin(core.Call{Action: next.action, Settings: settings, Source: core.Source{Actor: next.actor, Origin: ports.OriginHub}})
}

func newGUID() string { return uuid.NewString() }
