package beacon

import (
	"testing"

	"holdfast/ports"
)

func TestABeaconThatHangsIsAwayAndItsPluginIsNotTakenForHung(t *testing.T) {
	t.Parallel()
	h := &half{}
	late := ports.Errorf(ports.Deadline, "mesh", "no answer")
	for i, want := range []ports.Code{ports.Deadline, ports.Deadline, ports.Unavailable, ports.Unavailable} {
		if got := ports.CodeOf(h.missed("archive", late)); got != want {
			t.Errorf("probe %d is told as %s, want %s", i+1, got, want)
		}
	}
	if err := h.missed("archive", nil); err != nil {
		t.Errorf("an answer: %v", err)
	}
	if got := ports.CodeOf(h.missed("archive", late)); got != ports.Deadline {
		t.Errorf("the next probe without an answer is told as %s", got)
	}
}
