package ports_test

import (
	"testing"

	"holdfast/ports"
)

// crowded is a store in which so many early writes wait.
type crowded struct {
	*history
	waiting int
}

func (c crowded) Early(string) ([]ports.Entry, int, error) { return nil, c.waiting, nil }

func TestOneEarlyWriteMoreThanMayWaitInAllIsRefusedAsFull(t *testing.T) {
	t.Parallel()
	patch := update(`{"Status":"Running"}`)
	patch.Stamp = ports.Stamp{Ms: 1, Count: 1}
	effect, err := ports.Decide(patch, crowded{newHistory(), ports.MaxEarly - 1}, ports.Rules{})
	if err != nil || effect.Decision.Outcome != ports.Early || !effect.Keep {
		t.Errorf("the last that may wait is decided %+v, %v", effect.Decision, err)
	}
	effect, err = ports.Decide(patch, crowded{newHistory(), ports.MaxEarly}, ports.Rules{})
	if d := effect.Decision; err != nil || d.Outcome != ports.Refused || d.Err.Code != ports.Full || d.Err.Limit != ports.MaxEarly || effect.Keep {
		t.Errorf("one more is decided %+v, %v", d, err)
	}
}

func TestAnEarlyWriteThatIsNoRecordIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	patch := update(`{"Status":`)
	patch.Stamp = ports.Stamp{Ms: 1, Count: 1}
	if effect, err := ports.Decide(patch, newHistory(), ports.Rules{}); err != nil || effect.Decision.Outcome != ports.Refused || effect.Keep {
		t.Errorf("it is decided %+v, %v", effect.Decision, err)
	}
}
