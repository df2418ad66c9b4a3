package mesh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"holdfast/ports"
)

// lanes let frames and bodies in by size. Nobody's word about a size is trusted: a text is read in growing pieces, and before
// it grows beyond what a lane allows it needs a place in the next one. So small ones always pass, and of large ones only a few
// are in memory at a time, all beacons together. Places are taken in one order only, so nobody waits in a circle.
type lanes struct {
	tiers []tier
	wait  time.Duration // for a place
}

// tier allows texts beyond a size, so many at a time.
type tier struct {
	beyond int64
	places chan struct{}
}

// slowest is what a peer must send of one text, in bytes a second, after a time of grace.
const (
	slowest   = 1 << 20
	sendGrace = 30 * time.Second
)

func newLanes() *lanes {
	return &lanes{wait: time.Minute, tiers: []tier{
		{16 << 10, make(chan struct{}, 64)},
		{1 << 20, make(chan struct{}, 8)},
		{16 << 20, make(chan struct{}, 1)},
	}}
}

// passage is a text on its way in.
type passage struct {
	lanes *lanes
	held  int
}

// leave gives the places back. It may be called twice.
func (p *passage) leave() {
	for ; p.held > 0; p.held-- {
		<-p.lanes.tiers[p.held-1].places
	}
}

// advance takes the places that a text of a size needs.
func (p *passage) advance(ctx context.Context, size int64, busy *atomic.Bool) error {
	for p.held < len(p.lanes.tiers) && size > p.lanes.tiers[p.held].beyond {
		select {
		case p.lanes.tiers[p.held].places <- struct{}{}:
		default:
			limit := time.NewTimer(p.lanes.wait)
			defer limit.Stop()
			busy.Store(true)
			defer busy.Store(false)
			select {
			case p.lanes.tiers[p.held].places <- struct{}{}:
			case <-limit.C:
				return ports.Errorf(ports.Unavailable, "", "too many large texts are coming in; send it again in a moment")
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		p.held++
	}
	return nil
}

// read reads a text of at most limit bytes, which then belongs to the caller. It fails with TooLarge, or with Unavailable
// when there was no place for it in time, having passed over the rest of the text as far as that is reasonable, and gives its beginning and its end. The passage is left by the caller, when it has
// done with the text. busy is true while the text is not read because there is no place for it.
func (l *lanes) read(ctx context.Context, in io.Reader, limit int64, busy *atomic.Bool) (text []byte, p *passage, err error) {
	p = &passage{lanes: l}
	text = make([]byte, 0, 512)
	began := time.Now()
	for {
		if int64(len(text)) > limit {
			size := int64(len(text))
			first, last := ends(text)
			p.leave()
			err := l.over(in, last, size, limit)
			return append(first, last.text...), p, err
		}
		if len(text) == cap(text) {
			more := min(2*int64(cap(text)), max(limit+1, 512))
			if err := p.advance(ctx, more, busy); err != nil {
				first, last := ends(text)
				p.leave()
				if passed := l.over(in, last, int64(len(text)), limit); ports.CodeOf(passed) != ports.TooLarge || errors.Is(passed, errEndless) {
					err = passed
				}
				return append(first, last.text...), p, err
			}
			text = append(make([]byte, 0, more), text...)
		}
		n, err := in.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		switch {
		case errors.Is(err, io.EOF):
			if int64(len(text)) > limit {
				first, last := ends(text)
				return append(first, last.text...), p, ports.OverLimit("", "bytes", limit, int64(len(text)))
			}
			return text, p, nil
		case err != nil:
			return nil, p, err
		case time.Since(began) > sendGrace+time.Duration(len(text))*time.Second/slowest:
			return nil, p, ports.Errorf(ports.Invalid, "", "came too slowly")
		}
	}
}

// glance is how much of a refused text is looked at, at its beginning and at its end.
const glance = 4 << 10

// over passes over the rest of a text that is too large, so that its connection can go on; not for ever.
func (l *lanes) over(in io.Reader, last *tail, size, limit int64) error {
	rest, err := io.CopyN(last, in, 3*limit)
	switch {
	case err == nil:
		return errEndless
	case !errors.Is(err, io.EOF):
		return err
	}
	return ports.OverLimit("", "bytes", limit, size+rest)
}

// ends are copies of a text's beginning and its end.
func ends(text []byte) (first []byte, last *tail) {
	last = &tail{}
	_, _ = last.Write(text)
	return bytes.Clone(text[:min(len(text), glance)]), last
}

var errEndless = ports.Errorf(ports.TooLarge, "", "is many times larger than the limit")

// tail keeps the end of what is written.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	if len(p) >= glance {
		t.text = append(t.text[:0], p[len(p)-glance:]...)
		return len(p), nil
	}
	if over := len(t.text) + len(p) - glance; over > 0 {
		t.text = t.text[:copy(t.text, t.text[over:])]
	}
	t.text = append(t.text, p...)
	return len(p), nil
}
