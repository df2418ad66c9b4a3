package journal

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Journal is a ports.Journal on segment files. All its methods may be called from many goroutines.
type Journal struct {
	opts    Options
	dir     string
	log     hclog.Logger
	release func() // of the directory's lock
	wake    chan struct{}
	stopped chan struct{} // closed when the writer has ended

	// writing is held by whoever writes to the newest segment or begins one; it is taken before mu.
	writing sync.Mutex
	active  *active // the segment that is written to; nil before the first and after a failure

	// naming is held while files of segments get another name or are removed; it is taken before mu.
	naming sync.Mutex

	// mu is never held over a call to the disk.
	mu        sync.Mutex
	segments  []*segment // ascending; the last is the newest
	epoch     uuid.UUID
	epochFrom uint64
	next      uint64 // the Seq that the next entry gets
	head      uint64
	waiting   []*group // appended and not yet written
	spare     [][]byte // buffers of groups that are done
	pending   int64    // bytes that were appended and are not yet durable
	bytes     int64    // of all segments
	space     space
	fault     *ports.Error // why no segment can be opened
	damaged   []string     // names of files that were set aside or are gone
	kept      []string     // paths of those that were trimmed and stay for a person to look at
	closed    bool
	lastErr   error // of the last sync
	notify    func(head uint64)
}

var _ ports.Journal = (*Journal)(nil)

// Open opens or creates the journal of a family and begins a new epoch. It reads the newest segment only, of the others
// their headers. Damage never makes it fail; what does is a directory that cannot be used, one that another journal holds
// (Conflict), and segments of a newer version (Invalid).
func Open(o Options) (*Journal, error) {
	dir := filepath.Join(o.Dir, "journal", strings.ToLower(string(o.Family)))
	release, err := Lock(dir)
	if err != nil {
		return nil, err
	}
	j := &Journal{
		dir: dir, release: release,
		wake: make(chan struct{}, 1), stopped: make(chan struct{}),
		epoch: uuid.New(),
	}
	found, err := findSegments(dir)
	if err != nil {
		release()
		return nil, err
	}
	j.opts = o.withDefaults(found.bytes)
	j.log = j.opts.Logger
	if err := j.adopt(found); err != nil {
		release()
		return nil, err
	}
	if o.AtLeast > maxSeq {
		release()
		return nil, ports.Errorf(ports.Invalid, "journal: open", "%d is beyond every Seq", o.AtLeast)
	}
	j.next = max(j.head, o.AtLeast) + 1
	j.head = j.next - 1
	j.epochFrom = j.next
	j.lookAtSpace()
	go j.run(j.head)
	return j, nil
}

// Advance says that Seqs up to atLeast exist elsewhere, so that the next entry gets a higher one. Nothing happens when one
// has been given already. What was appended before becomes durable first.
func (j *Journal) Advance(atLeast uint64) error {
	if atLeast > maxSeq {
		return ports.Errorf(ports.Invalid, "journal: advance", "%d is beyond every Seq", atLeast)
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return errClosed("journal: advance")
	}
	if atLeast < j.next {
		j.mu.Unlock()
		return nil
	}
	if j.next == j.epochFrom {
		j.epochFrom = atLeast + 1
	}
	from := j.next
	j.next = atLeast + 1
	before := j.takeWaiting()
	j.mu.Unlock()

	j.commit(before)
	j.mu.Lock()
	j.head = max(j.head, atLeast)
	j.mu.Unlock()
	j.nudge() // the head moved
	j.log.Info("Seqs are left out, because they are known from elsewhere", "from", from, "to", atLeast)
	return nil
}

// Bounds tells where the journal stands.
func (j *Journal) Bounds() ports.Bounds {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := ports.Bounds{
		Epoch: j.epoch.String(), EpochFrom: j.epochFrom,
		First: j.head + 1, Head: j.head, Appended: j.next - 1,
		Bytes: j.bytes, Limit: j.opts.Limit, Reserve: j.opts.Reserve, Free: j.space.left(),
		Full:    j.room(usualEntry) != nil,
		Damaged: slices.Clone(j.damaged),
	}
	for _, s := range j.segments {
		if !s.empty() {
			b.First = s.base
			break
		}
	}
	if j.fault != nil {
		b.Fault = j.fault.Error()
		b.Full = b.Full || j.fault.Code == ports.Full
	}
	return b
}

// Notify sets the function that is told the head when it has moved.
func (j *Journal) Notify(durable func(head uint64)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notify = durable
}

// Close makes durable what was appended, ends the journal's goroutine and releases its directory.
func (j *Journal) Close() error {
	j.mu.Lock()
	already := j.closed
	j.closed = true
	j.lastErr = nil
	j.mu.Unlock()
	j.nudge()
	<-j.stopped
	if already {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	var closing error
	if j.active != nil {
		closing = j.active.f.Close()
		j.active = nil
	}
	j.release()
	if err := errors.Join(j.lastErr, closing); err != nil {
		return ports.Wrap(ports.Unavailable, "journal: close", err)
	}
	return nil
}

// nudge lets the writer look for work.
func (j *Journal) nudge() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func errClosed(op string) error {
	return ports.Errorf(ports.Unavailable, op, "the journal is closed")
}

// maxSeq is beyond what any journal will reach; a larger one is a mistake that must not be carried on.
const maxSeq = 1 << 62

// retryEvery is how often the writer looks whether it can write again.
const retryEvery = 200 * time.Millisecond
