// Package line is the line in front of a store's one writer: jobs in the order in which they came, batches that fit into one
// transaction together. The stores that decide in their own transactions share it.
package line

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"

	"holdfast/ports"
)

// Queue is the line. Its length is bounded by bytes, and who comes when it is full waits for room.
type Queue struct {
	room *semaphore.Weighted

	mu     sync.Mutex
	jobs   []*Job
	shut   error         // why nothing more is taken
	signal chan struct{} // one token while there may be work
}

// Job is one thing for the writer to do: a batch, or anything else.
type Job struct {
	Batch *Pending
	Run   func() error
	Cost  int64
	Err   error // once it is done
	done  chan struct{}
}

const (
	queueBytes = 32 << 20
	// What one transaction takes at most, but for a single batch that is larger.
	groupEntries = 1024
	groupBytes   = 8 << 20
)

// New makes an empty line.
func New() *Queue {
	return &Queue{room: semaphore.NewWeighted(queueBytes), signal: make(chan struct{}, 1)}
}

func (q *Queue) wake() {
	select {
	case q.signal <- struct{}{}:
	default:
	}
}

// Add puts a job in line, at the front when it is urgent. ctx bounds the wait for room.
func (q *Queue) Add(ctx context.Context, j *Job, urgent bool) error {
	j.done = make(chan struct{})
	j.Cost = min(j.Cost, queueBytes)
	if err := q.room.Acquire(ctx, j.Cost); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut != nil {
		q.room.Release(j.Cost)
		return q.shut
	}
	if urgent {
		q.jobs = append([]*Job{j}, q.jobs...)
	} else {
		q.jobs = append(q.jobs, j)
	}
	q.wake()
	return nil
}

// Close takes nothing more. What is in line is still done, unless drop says that it fails with the reason.
func (q *Queue) Close(reason error, drop bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shut == nil {
		q.shut = reason
	}
	if drop {
		for _, j := range q.jobs {
			q.Finish(j, reason)
		}
		q.jobs = nil
	}
	q.wake()
}

// Take waits for work: one job, or a run of batches that fit into one transaction. It gives nil once the queue is closed
// and empty.
func (q *Queue) Take() []*Job {
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
func (q *Queue) group() (n int) {
	entries, bytes := 0, int64(0)
	for _, j := range q.jobs {
		if j.Batch == nil {
			return max(n, 1)
		}
		entries += len(j.Batch.Batch.Entries)
		bytes += j.Cost
		if n > 0 && (entries > groupEntries || bytes > groupBytes) {
			break
		}
		n++
	}
	return n
}

// Finish says what became of a job.
func (q *Queue) Finish(j *Job, err error) {
	j.Err = err
	q.room.Release(j.Cost)
	close(j.done)
}

// Pending is a batch on its way; see ports.Pending.
type Pending struct {
	Batch     ports.CommitBatch
	Decisions []ports.Decision
	Refused   error // the batch alone is refused; others of its transaction are not concerned
	job       *Job
}

// Submit puts a batch in line. ctx bounds the wait for room.
func (q *Queue) Submit(ctx context.Context, b ports.CommitBatch) (*Pending, error) {
	p := &Pending{Batch: b}
	p.job = &Job{Batch: p}
	for i := range b.Entries {
		p.job.Cost += b.Entries[i].Cost()
	}
	if err := q.Add(ctx, p.job, false); err != nil {
		return nil, err
	}
	return p, nil
}

// Wait waits for the batch's transaction.
func (p *Pending) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-p.job.done:
		if p.job.Err != nil {
			return nil, p.job.Err
		}
		return p.Decisions, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Done is closed once it is done.
func (j *Job) Done() <-chan struct{} { return j.done }

// Await waits for a job. A caller who goes away leaves it in line.
func (j *Job) Await(ctx context.Context) error {
	select {
	case <-j.done:
		return j.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
