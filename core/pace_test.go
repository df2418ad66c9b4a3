package core

import (
	"testing"
	"time"

	"holdfast/ports"
)

func TestAFollowerRestsForCallersAndStillGains(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		written, copied uint64
		took, want      time.Duration
		rows            int
	}{
		"nobody writes":           {0, 500, 40 * time.Millisecond, 0, 512},
		"callers write":           {10, 500, 40 * time.Millisecond, 80 * time.Millisecond, busyLimit},
		"a long page":             {10, 500, time.Second, longestYield, busyLimit},
		"callers write more":      {300, 500, 40 * time.Millisecond, 0, 512},
		"nothing is copied":       {10, 0, 40 * time.Millisecond, 0, 512},
		"twice as much is copied": {250, 500, 10 * time.Millisecond, 20 * time.Millisecond, busyLimit},
	} {
		p := pace{limit: ports.MaxBatchEntries}
		p.look(1000, 100)
		p.look(1000+c.written, 100+c.copied)
		if got := p.rest(c.took); got != c.want || p.rows() != c.rows {
			t.Errorf("%s: it rests %s for pages of %d rows, want %s and %d", name, got, p.rows(), c.want, c.rows)
		}
	}
}

func TestPagesGrowAndShrinkWithTheTimeThatTheyTake(t *testing.T) {
	t.Parallel()
	p := pace{limit: firstLimit}
	for range 10 {
		p.took(p.rows(), 20*time.Millisecond, false)
	}
	if p.limit != ports.MaxBatchEntries {
		t.Errorf("far behind, short pages grow to %d rows", p.limit)
	}
	p.took(512, 60*time.Millisecond, true)
	if p.limit != 256 {
		t.Errorf("a long page at the head makes it %d rows", p.limit)
	}
	p.took(3, time.Millisecond, true)
	if p.limit != 256 {
		t.Errorf("a page that was not full makes it %d rows", p.limit)
	}
	for range 20 {
		p.took(1, 2*time.Second, false)
	}
	if p.limit != 1 {
		t.Errorf("a store that takes seconds for a row gets pages of %d", p.limit)
	}
}

func TestAFollowerOnASlowDiskStillGains(t *testing.T) {
	t.Parallel()
	for _, sync := range []time.Duration{2 * time.Millisecond, 55 * time.Millisecond, 120 * time.Millisecond} {
		p := pace{limit: firstLimit}
		committed, at, now := uint64(5000), uint64(0), time.Duration(0)
		for now < 5*time.Minute {
			p.look(committed, at)
			n := uint64(p.rows())
			took := sync + time.Duration(n)*100*time.Microsecond
			at = min(at+n, committed)
			p.took(int(n), took, at == committed)
			d := took + p.rest(took)
			now += d
			committed += uint64(d.Seconds() * 300)
		}
		if committed-at > lagSeqs {
			t.Errorf("with a sync of %s it is %d behind after five minutes, pages of %d rows", sync, committed-at, p.limit)
		}
	}
}
