package journal

import (
	"context"

	"holdfast/ports"
)

// maxWaiting bounds the memory that entries may take which wait for a slow disk.
const maxWaiting = 256 << 20

// maxGroup is the size at which no more entries join a group. Groups that wait together share a sync all the same.
const maxGroup = 1 << 20

// group is a run of entries with contiguous Seqs that is written at once. It is the receipt of everyone whose entries are
// in it.
type group struct {
	first, last uint64
	buf         []byte  // frames, but for those of large entries
	large       []large // in order
	marks       []mark  // offsets relative to the group
	size        int64
	done        chan struct{} // closed once err is set
	err         error
}

// large is an entry whose record is written from where it is; its frames belong into buf at an offset.
type large struct {
	at    int
	entry ports.Entry
}

func (g *group) add(e *ports.Entry) {
	if n := len(g.marks); n == 0 || g.size >= g.marks[n-1].off+markBytes {
		g.marks = append(g.marks, mark{e.Seq, g.size})
	}
	g.last = e.Seq
	if isLarge(e) {
		g.large = append(g.large, large{len(g.buf), *e})
		g.size += largeSize(e)
		return
	}
	before := len(g.buf)
	g.buf = appendFrame(g.buf, e)
	g.size += int64(len(g.buf) - before)
}

// Wait waits until the group is on disk or has failed.
func (g *group) Wait(ctx context.Context) error {
	select {
	case <-g.done:
		return g.err
	default:
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// receipts is the receipt of an Append whose entries are in several groups.
type receipts []*group

func (r receipts) Wait(ctx context.Context) error {
	for _, g := range r {
		if err := g.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Append gives the entries their Seqs and lets the writer know. An entry that can never be kept is TooLarge.
func (j *Journal) Append(entries []ports.Entry) (ports.Receipt, error) {
	const op = "journal: append"
	var need int64
	for i := range entries {
		e := &entries[i]
		if len(e.Record) > ports.MaxRecordBytes {
			return nil, ports.Wrap(ports.TooLarge, op, ports.OverLimit("record", "bytes", ports.MaxRecordBytes, int64(len(e.Record))))
		}
		if n := envelopeBound(e); n > maxEnvelope {
			return nil, ports.Wrap(ports.TooLarge, op, ports.OverLimit("envelope", "bytes", maxEnvelope, int64(n)))
		}
		need += frameBound(e)
	}
	j.mu.Lock()
	if j.space.stale(j.opts.Now(), need) {
		j.mu.Unlock()
		j.lookAtSpace()
		j.mu.Lock()
	}
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return nil, errClosed(op)
	case j.fault != nil:
		return nil, ports.Wrap(j.fault.Code, op, j.fault)
	case j.pending+need > maxWaiting && j.pending > 0:
		return nil, ports.Errorf(ports.Unavailable, op, "%d bytes wait for the disk already", j.pending)
	}
	if err := j.room(need); err != nil {
		err.Op = op
		if !j.space.refused {
			j.space.refused = true
			j.nudge() // from now on the writer looks from time to time whether there is room again
		}
		return nil, err
	}
	r := make(receipts, 0, 1)
	for i := range entries {
		g := j.openGroup()
		if len(r) == 0 || r[len(r)-1] != g {
			r = append(r, g)
		}
		e := &entries[i]
		e.Seq = j.next
		j.next++
		before := g.size
		g.add(e)
		j.pending += g.size - before
		j.space.taken += g.size - before
	}
	j.nudge()
	if len(r) == 1 {
		return r[0], nil
	}
	return r, nil
}

// openGroup gives the group that the next Seq joins.
func (j *Journal) openGroup() *group {
	if n := len(j.waiting); n > 0 {
		g := j.waiting[n-1]
		if g.size < min(maxGroup, j.opts.SegmentBytes) && g.last+1 == j.next {
			return g
		}
	}
	g := &group{first: j.next, last: j.next - 1, done: make(chan struct{})}
	if n := len(j.spare); n > 0 {
		g.buf, j.spare = j.spare[n-1], j.spare[:n-1]
	}
	j.waiting = append(j.waiting, g)
	return g
}

// takeWaiting gives the groups that wait to be written and leaves none.
func (j *Journal) takeWaiting() []*group {
	taken := j.waiting
	j.waiting = nil
	return taken
}

// settle ends a group. Its buffer goes to the next one.
func (j *Journal) settle(g *group, err error) {
	g.err = err
	j.pending -= g.size
	if cap(g.buf) <= 2*maxGroup && len(j.spare) < 4 {
		j.spare = append(j.spare, g.buf[:0])
	}
	g.buf, g.large, g.marks = nil, nil, nil
	close(g.done)
}
