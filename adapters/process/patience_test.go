package process

import (
	"testing"
	"time"
)

func TestTheWaitDoublesUpToItsLimit(t *testing.T) {
	t.Parallel()
	for failures, most := range map[int]time.Duration{1: 100 * time.Millisecond, 2: 200 * time.Millisecond, 9: 25600 * time.Millisecond, 10: 30 * time.Second, 1000: 30 * time.Second} {
		var least, longest time.Duration = time.Hour, 0
		for range 200 {
			p := patience{base: 100 * time.Millisecond, limit: 30 * time.Second, healthy: 3 * time.Minute, failures: failures - 1}
			wait, parked := p.failed(0, false)
			if wait < most/2 || wait > most || parked != (most == p.limit) {
				t.Fatalf("after %d failures: %s, %t", failures, wait, parked)
			}
			least, longest = min(least, wait), max(longest, wait)
		}
		if longest-least < most/8 {
			t.Errorf("after %d failures all wait from %s to %s", failures, least, longest)
		}
	}
}

func TestWhatNoRepetitionCanMendIsParkedAtOnce(t *testing.T) {
	t.Parallel()
	p := patience{base: time.Millisecond, limit: 30 * time.Second, healthy: time.Minute}
	if wait, parked := p.failed(0, true); wait < p.limit/2 || !parked {
		t.Errorf("%s, %t", wait, parked)
	}
}

func TestOnlyAHealthyRunClearsTheCountOfFailures(t *testing.T) {
	t.Parallel()
	p := patience{base: time.Second, limit: time.Minute, healthy: 3 * time.Minute}
	for i, c := range []struct {
		ran      time.Duration
		failures int
		at       string // once
		parked   bool
	}{
		{10 * time.Hour, 1, "at once", false},
		{2 * time.Second, 2, "", false}, // dies two seconds after each handshake: a start is no recovery
		{2 * time.Minute, 3, "", false},
		{0, 4, "", false},
		{179 * time.Second, 5, "", false},
		{3 * time.Minute, 1, "at once", false},
		{0, 2, "", false}, {0, 3, "", false}, {0, 4, "", false}, {0, 5, "", false}, {0, 6, "", false},
		{0, 7, "", true},
		{time.Second, 8, "", true},
		{time.Hour, 1, "at once", false},
	} {
		wait, parked := p.failed(c.ran, false)
		if p.failures != c.failures || parked != c.parked || (wait == 0) != (c.at == "at once") {
			t.Errorf("failure %d, after %s: %d failures, parked %t, %s to wait", i, c.ran, p.failures, parked, wait)
		}
	}
}
