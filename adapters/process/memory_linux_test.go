package process

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func TestAPluginThatEatsMemoryIsKilledAtItsLimit(t *testing.T) {
	t.Parallel()
	for _, eater := range []string{"eat", "child eats"} {
		t.Run(eater, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, hclog.NewNullLogger())
			spec.Memory = 300 << 20
			deaths := make(chan Status, 100)
			spec.Notify = func(s Status) {
				if s.State == Restarting {
					deaths <- s
				}
			}
			p := prepare(t, spec)
			p.Start()
			if err := p.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := put(t.Context(), p, eater)
			if ports.CodeOf(err) != ports.BackendGone {
				t.Errorf("the call: %v", err)
			}
			select {
			case s := <-deaths:
				if !strings.Contains(s.Detail, "the limit is 300 MiB, and was killed; raise memory_limit in its block") || !strings.HasPrefix(s.Detail, "the plugin used ") {
					t.Errorf("detail %q", s.Detail)
				}
			case <-time.After(20 * time.Second):
				t.Fatal("it eats on")
			}
			eventually(t, 5*time.Second, "the next one answers", func() bool { return put(t.Context(), p, "a") == nil })
		})
	}
}

func TestTheKernelTakesAPluginBeforeItsHost(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger())
	score := func(pid string) int {
		text, err := os.ReadFile("/proc/" + pid + "/oom_score_adj")
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if own, its := score("self"), score(strconv.Itoa(pidOf(t, p))); its != min(own+oomShift, 1000) {
		t.Errorf("its %d, the host's %d", its, own)
	}
}
