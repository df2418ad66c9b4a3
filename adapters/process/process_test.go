package process

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func TestAPluginKeepsWhatItIsGiven(t *testing.T) {
	t.Parallel()
	p := run(t, nil)
	for _, size := range []int{2, 3900 << 10, 4100 << 10, 15900 << 10, 16100 << 10, 71 << 20} {
		row := ports.Row{Kind: ports.KindItem, Key: "wi", Body: make([]byte, size)}
		if _, err := p.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}}); err != nil {
			t.Fatalf("put of %d bytes: %v", size, err)
		}
		if got, err := p.Item(t.Context(), "wi"); err != nil || len(got.Body) != size {
			t.Fatalf("item of %d bytes: %d, %v", size, len(got.Body), err)
		}
	}
	tooLarge := ports.Row{Kind: ports.KindItem, Key: "wi", Body: make([]byte, 73<<20)}
	if _, err := p.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{tooLarge}}); ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("put of 73 MiB: %v", err)
	}
	d, err := p.Describe(t.Context())
	if err != nil || d.Kind != "memory" {
		t.Fatalf("describe: %v, %v", d, err)
	}
	if _, has := ports.As[ports.LocalStore](p, d); !has {
		t.Error("the declared LocalStore is not there")
	}
	if _, has := ports.As[ports.Pruner](p, d); has {
		t.Error("a Pruner is there that was not declared")
	}
	if _, err := p.Item(t.Context(), "unknown"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestStartAndStopAreTwoLinesAtInfo(t *testing.T) {
	t.Parallel()
	log := &journal{}
	p := run(t, log.logger(hclog.Info))
	if err := p.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`pid=\d+`).ReplaceAllString(log.String(), "pid=PID")
	got = regexp.MustCompile(`(took|ran)=\S+`).ReplaceAllString(got, "$1=TIME")
	want := "[INFO]  tape: plugin started: pid=PID kind=memory version=1.0 took=TIME\n[INFO]  tape: plugin stopped: pid=PID ran=TIME\n"
	if got != want {
		t.Errorf("the log:\n%s\nand not:\n%s", got, want)
	}
	if s := p.Status(); s.State != Stopped || s.Running {
		t.Errorf("status %+v", s)
	}
	if err := p.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("a call afterwards: %v", err)
	}
}

func TestAKilledPluginIsBackAtOnceAndItsCallsEndAtOnce(t *testing.T) {
	t.Parallel()
	p := run(t, nil)
	for range 5 {
		pid, starts := pidOf(t, p), p.Status().Starts
		pending, err := p.Commit(t.Context(), ports.CommitBatch{Family: ports.Queue, Through: 1})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := pending.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, "the next child answers", func() bool {
			return p.Status().Starts > starts && p.Probe(t.Context(), ports.Queue) == nil
		})
		if now := p.Status(); now.PID == pid {
			t.Fatalf("status %+v", now)
		}
		if at, err := p.Position(t.Context(), ports.Queue); err != nil || at.StoreID != "tape" {
			t.Fatalf("the next child was not configured: %v, %v", at.StoreID, err)
		}
	}
	entries, err := os.ReadDir(p.spec.RunDir)
	if err != nil || len(entries) != 2 { // the lock and the present child's folder
		t.Errorf("the run directory has %v, %v", entries, err)
	}
}

func TestADeadPluginLeavesItsLastWords(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]struct{ ending, word string }{
		"die":        {"exited with code 7", "about to die"},
		"die loudly": {"exited with code 2", "panic: the reels fell off"},
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, nil)
			states := make(chan Status, 1000)
			spec.Notify = func(s Status) { states <- s }
			p := prepare(t, spec)
			p.Start()
			if err := p.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := put(ctx, p, key); ports.CodeOf(err) != ports.BackendGone {
				t.Fatalf("the call: %v", err)
			}
			for s := range states {
				if s.State != Restarting && s.State != GivenUp {
					continue
				}
				if !strings.Contains(s.Detail, want.ending) || !slices.Contains(s.Words, want.word) {
					t.Errorf("detail %q, words %q", s.Detail, s.Words)
				}
				break
			}
		})
	}
}

func TestAPanicInACallFailsThatCallAlone(t *testing.T) {
	t.Parallel()
	log := &journal{}
	p := run(t, log.logger(hclog.Info), "panic")
	pid := pidOf(t, p)
	err := p.Probe(t.Context(), ports.Queue)
	if ports.CodeOf(err) != ports.Internal || !strings.Contains(err.Error(), "the tape is torn") {
		t.Errorf("the call: %v", err)
	}
	if err := put(t.Context(), p, "a"); err != nil || p.Status().PID != pid {
		t.Errorf("the next call: %v, pid %d then %d", err, pid, p.Status().PID)
	}
	eventually(t, 5*time.Second, "the stack is in the log", func() bool { return strings.Contains(log.String(), "memory).Probe") })
}

func TestAHungPluginIsKilledAndFollowed(t *testing.T) {
	t.Parallel()
	p := prepare(t, specOf(t, nil))
	p.timing.answer, p.timing.silence = 500*time.Millisecond, 2*time.Second
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	freeze(t, pid)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := put(ctx, p, "a"); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("a call into it: %v", err)
	}
	eventually(t, 5*time.Second, "another child", func() bool { s := p.Status(); return s.Running && s.PID != pid })
	if alive(pid) {
		t.Error("the hung one is still there")
	}
}

func TestWhateverAPluginPrintsTheHostLives(t *testing.T) {
	t.Parallel()
	for _, habit := range []string{"banner", "crazy"} {
		t.Run(habit, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			p := run(t, log.logger(hclog.Debug), habit)
			if err := put(t.Context(), p, "print"); err != nil {
				t.Fatal(err)
			}
			if err := put(t.Context(), p, "log"); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "what it printed and logged", func() bool {
				return strings.Contains(log.String(), "printed") && strings.Contains(log.String(), "[WARN]  tape: tape is nearly full: left=3")
			})
			if len(log.String()) > 100<<10 {
				t.Errorf("the log has %d bytes", len(log.String()))
			}
			if text := log.String(); strings.Contains(text, "\x00") || !utf8.ValidString(text) {
				t.Error("control characters reached the log")
			}
		})
	}
}

func TestAPluginSeesNothingOfTheHostsEnvironment(t *testing.T) {
	t.Setenv("SECRET_DSN", "postgres://u:p@h/d")
	t.Setenv("TZ", "Asia/Kathmandu")
	p := run(t, nil)
	at, err := p.Position(t.Context(), ports.Queue)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for pair := range strings.SplitSeq(at.Epoch, "\n") {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	allowed := append([]string{
		"HOLDFAST_PLUGIN", "HOLDFAST_LOG_LEVEL", "PLUGIN_MIN_PORT", "PLUGIN_MAX_PORT", "PLUGIN_PROTOCOL_VERSIONS", "PLUGIN_UNIX_SOCKET_DIR",
	}, passed...)
	var set []string
	for _, name := range allowed {
		if _, is := os.LookupEnv(name); is || !slices.Contains(passed, name) {
			set = append(set, name)
		}
	}
	slices.Sort(names)
	slices.Sort(set)
	if !slices.Equal(names, set) {
		t.Errorf("it sees %v, want %v", names, set)
	}
	if !strings.Contains(at.Epoch, "TZ=Asia/Kathmandu") {
		t.Error("it does not see TZ")
	}
}

func TestARestartOnRequestSaysWhy(t *testing.T) {
	t.Parallel()
	spec := specOf(t, nil)
	states := make(chan Status, 1000)
	spec.Notify = func(s Status) { states <- s }
	p := prepare(t, spec)
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	p.Restart("a batch had no answer for 5s")
	why := ""
	for s := range states {
		if s.State == Restarting {
			why = s.Detail
		}
		if s.Running && s.PID != pid {
			break
		}
	}
	if !strings.Contains(why, "the plugin was restarted: a batch had no answer for 5s") {
		t.Errorf("detail %q", why)
	}
}

func TestRetryEndsTheWait(t *testing.T) {
	t.Parallel()
	spec := specOf(t, nil, "exit")
	waiting, starting := make(chan struct{}, 100), make(chan struct{}, 100)
	spec.Notify = func(s Status) {
		switch s.State {
		case GivenUp:
			waiting <- struct{}{}
		case Starting:
			starting <- struct{}{}
		}
	}
	p := prepare(t, spec)
	p.timing.base, p.timing.limit = time.Hour, time.Hour
	p.Start()
	<-waiting
	<-starting
	for range 2 { // the first may come before the wait has begun
		p.Retry()
		eventually(t, 5*time.Second, "another launch", func() bool {
			p.Retry()
			return len(starting) > 0
		})
		<-starting
	}
}

func TestBatchesOfAPluginThatDiesFail(t *testing.T) {
	t.Parallel()
	p := run(t, nil)
	pid := pidOf(t, p)
	freeze(t, pid)
	var pendings []ports.Pending
	for through := uint64(1); through <= 3; through++ {
		pending, err := p.Commit(t.Context(), ports.CommitBatch{Family: ports.Queue, After: through - 1, Through: through})
		if err != nil {
			t.Fatal(err)
		}
		pendings = append(pendings, pending)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	for _, pending := range pendings {
		if _, err := pending.Wait(t.Context()); ports.CodeOf(err) != ports.BackendGone {
			t.Errorf("got %v", err)
		}
	}
}
