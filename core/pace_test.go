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
		"callers write more":      {300, 500, 40 * time.Millisecond, 0, busyLimit},
		"nothing is copied":       {10, 0, 40 * time.Millisecond, 0, busyLimit},
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
