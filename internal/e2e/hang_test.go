package e2e_test

import (
	"testing"
	"time"

	"holdfast/internal/e2e"
)

func TestAHungPluginHoldsUpNobodyAndIsReplaced(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a plugin to be given up")
	}
	t.Parallel()
	host := e2e.Start(t)
	w := e2e.StartWorkload(t, host.Client(), 20*time.Millisecond)
	client := host.Client()
	defer client.Close()
	<-time.After(300 * time.Millisecond)
	if host.HangPlugins() == 0 {
		t.Fatal("there is no plugin to hang")
	}
	for path, limit := range map[string]time.Duration{"/v1/status": 500 * time.Millisecond, "/v1/work-items": e2e.CallerLimit, "/v1/work-items/wi-0-0": e2e.CallerLimit} {
		began := time.Now()
		if _, err := client.Get(t.Context(), path, nil); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > limit {
			t.Errorf("%s took %s", path, took)
		}
	}
	client.Settle(t) // only another plugin can do that
	w.End()
	client.Settle(t)
	w.Check()
	t.Logf("%d writes, %d of them deferred, slowest answer %s", w.Writes, w.Deferred, w.Slowest.Round(time.Millisecond))
	if w.Slowest > e2e.CallerLimit {
		t.Errorf("a caller waited %s", w.Slowest)
	}
	for _, f := range w.Failures {
		t.Errorf("a write was not acknowledged: %s", f)
	}
}

func TestAHungPluginDoesNotHoldUpTheEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("waits for a plugin to be given up")
	}
	t.Parallel()
	host := e2e.Start(t)
	host.HangPlugins()
	began := time.Now()
	host.Stop(t)
	if took := time.Since(began); took > 12*time.Second {
		t.Errorf("the host took %s to stop", took)
	}
}
