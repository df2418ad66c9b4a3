package postgres

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"holdfast/ports"
)

// queue is the line in front of the writer. Batches keep the order in which they came; its length is bounded by bytes, and
// who comes when it is full waits for room.
type queue struct {
	room *semaphore.Weighted

	mu     sync.Mutex
	jobs   []*job
	shut   error         // why nothing more is taken
	signal chan struct{} // one token while there may be work
}

// job is one thing for the writer to do: a batch, or anything else.
type job struct {
	batch *pending
	run   func() error
	cost  int64
	err   error
	done  chan struct{}
}

const (
	queueBytes = 32 << 20
	// What one transaction takes at most, but for a single batch that is larger.
	groupEntries = 1024
	groupBytes   = 8 << 20
)

func newQueue() *queue {
	return &queue{room: semaphore.NewWeighted(queueBytes), signal: make(chan struct{}, 1)}
}

func (q *queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// add puts a job in line, at the front when it is urgent. ctx bounds the wait for room.
func (q *queue) add(ctx context.Context, j *job, urgent bool) error {
	j.done = make(chan struct{})
	j.cost = min(j.cost, queueBytes)
	if err := q.room.Acquire(ctx, j.cost); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut != nil {
		q.room.Release(j.cost)
		return q.shut
	}
	if urgent {
		q.jobs = append([]*job{j}, q.jobs...)
	} else {
		q.jobs = append(q.jobs, j)
	}
	q.wake()
	return nil
}

// close takes nothing more. What is in line is still done, unless drop says that it fails with the reason.
func (q *queue) close(reason error, drop bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut == nil {
		q.shut = reason
	}
	if drop {
		for _, j := range q.jobs {
			q.finish(j, reason)
		}
		q.jobs = nil
	}
	q.wake()
}

// take waits for work: one job, or a run of batches that fit into one transaction. It gives nil once the queue is closed
// and empty.
func (q *queue) take() []*job {
	for {
		q.mu.Lock()
		if n := q.group(); n > 0 {
			group := q.jobs[:n:n]
			q.jobs = q.jobs[n:]
			if len(q.jobs) == 0 {
				q.jobs = nil
			}
			q.mu.Unlock()
			return group
		}
		shut := q.shut != nil
		q.mu.Unlock()
		if shut {
			return nil
		}
		<-q.signal
	}
}

// group is how many jobs from the front go together.
func (q *queue) group() (n int) {
	entries, bytes := 0, int64(0)
	for _, j := range q.jobs {
		if j.batch == nil {
			return max(n, 1)
		}
		entries += len(j.batch.batch.Entries)
		bytes += j.cost
		if n > 0 && (entries > groupEntries || bytes > groupBytes) {
			break
		}
		n++
	}
	return n
}

func (q *queue) finish(j *job, err error) {
	j.err = err
	q.room.Release(j.cost)
	close(j.done)
}

// pending is a batch on its way; see ports.Pending.
type pending struct {
	batch     ports.CommitBatch
	job       *job
	decisions []ports.Decision
	refused   error // the batch alone is refused; others of its transaction are not concerned
}

// Wait waits for the batch's transaction.
func (p *pending) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-p.job.done:
		if p.job.err != nil {
			return nil, p.job.err
		}
		return p.decisions, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// await waits for a job. A caller who goes away leaves it in line.
func (j *job) await(ctx context.Context) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}
