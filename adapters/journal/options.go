package journal

import (
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Options say where a journal is and how large it may grow.
type Options struct {
	Dir    string // the host's data directory; the segments are in journal/FAMILY below it
	Family ports.Family

	// Limit is how many bytes the segments may take; 0 means the lower of 1 GiB and a quarter of the free space.
	Limit int64
	// Reserve is the free space of the disk that Append leaves alone; 0 means the larger of 64 MiB and 2 % of the disk, but
	// never over a quarter of the free space. Negative means none.
	Reserve int64
	// SegmentBytes is the size at which a new segment begins; 0 means a sixteenth of the limit within 256 KiB and 16 MiB.
	SegmentBytes int64

	// AtLeast is the highest Seq known from elsewhere: the host's state and the local store. The new epoch begins above it.
	AtLeast uint64

	Logger hclog.Logger     // nil logs nothing
	Now    func() time.Time // nil is time.Now
	Disk   Disk
}

const (
	mostLimit    = 1 << 30
	leastReserve = 64 << 20
	mostSegment  = 16 << 20
	leastSegment = 256 << 10
)

// withDefaults fills in what was left open. What the journal itself takes up already counts as free, so that a restart on
// a busy disk finds about the limits that the start before had.
func (o Options) withDefaults(own int64) Options {
	if o.Logger == nil {
		o.Logger = hclog.NewNullLogger()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Disk = o.Disk.orReal()
	free, total, err := o.Disk.Space(o.Dir)
	if err != nil {
		o.Logger.Warn("the free space of the disk is not known, only the journal's own limit holds", "error", err)
		free, total = 4*mostLimit, 0
	}
	quarter := (free + own) / 4
	if o.Limit <= 0 {
		o.Limit = min(mostLimit, quarter)
	}
	if o.Reserve == 0 && err == nil {
		o.Reserve = min(max(leastReserve, total/50), quarter)
	}
	o.Reserve = max(o.Reserve, 0)
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = min(max(o.Limit/16, leastSegment), mostSegment)
	}
	o.SegmentBytes = min(o.SegmentBytes, max(o.Limit/4, 1)) // else trimming could not free what the newest one takes
	return o
}
