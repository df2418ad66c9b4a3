package process

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestKillEndsAPluginAtOnceWhateverItDoes(t *testing.T) {
	t.Parallel()
	log := &journal{}
	for name, upset := range map[string]func(t *testing.T, p *Process){
		"at work": func(*testing.T, *Process) {},
		"frozen":  func(t *testing.T, p *Process) { freeze(t, pidOf(t, p)) },
		"in a drain": func(t *testing.T, p *Process) {
			go func() { _ = p.Close() }()
			eventually(t, 5*time.Second, "it drains", func() bool { return strings.Contains(log.String(), "draining") })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := prepare(t, specOf(t, log.logger(hclog.Info), "drain-hangs"))
			p.timing.drain = 20 * time.Second
			p.Start()
			if err := p.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			pid := pidOf(t, p)
			upset(t, p)
			began := time.Now()
			p.Kill()
			if alive(pid) {
				t.Error("it is still there")
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if err := p.Stop(t.Context()); err != nil {
				t.Error(err)
			}
			if s := p.Status(); s.State != Stopped || s.Running || s.Starts != 1 {
				t.Errorf("status %+v", s)
			}
			if left, err := os.ReadDir(p.spec.RunDir); err != nil || len(left) != 1 {
				t.Errorf("the run directory has %v, %v", left, err)
			}
		})
	}
}

func TestKillDuringALaunchAndBeforeAnyIsHarmless(t *testing.T) {
	t.Parallel()
	p := prepare(t, specOf(t, hclog.NewNullLogger()))
	p.Kill()
	if s := p.Status(); s.State != Stopped {
		t.Errorf("status %+v", s)
	}
	p = prepare(t, specOf(t, hclog.NewNullLogger(), "mute"))
	p.Start()
	p.Kill()
	if s := p.Status(); s.State != Stopped || s.Running {
		t.Errorf("status %+v", s)
	}
}
