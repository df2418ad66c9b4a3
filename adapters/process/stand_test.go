package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"holdfast/ports"
)

// The test binary is its own plugin and its own host: started with one of these words as first argument it behaves so.
const (
	asPlugin = "be-plugin"
	asHost   = "be-host"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == asPlugin:
		bePlugin(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == asHost:
		beHost(os.Args[2:])
	}
	goleak.VerifyTestMain(m)
}

// quick are numbers for tests; what they bound happens well within them.
var quick = timing{
	start: 30 * time.Second, configure: 10 * time.Second, check: 50 * time.Millisecond, answer: time.Second,
	silence: time.Hour, drain: time.Second, end: time.Second, healthy: time.Minute,
	base: 10 * time.Millisecond, limit: 200 * time.Millisecond, look: 20 * time.Millisecond,
}

// self is this test binary.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runDir is a short one; t.TempDir is too long for sockets.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := OpenRunDir("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir.Path()
}

// journal is a logger that remembers.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "tape", Output: j, Level: level, DisableTime: true})
}

func specOf(t testing.TB, log hclog.Logger, habits ...string) Spec {
	return Spec{
		Name: "tape", Kind: "memory", Path: self(t), Args: append([]string{asPlugin}, habits...), RunDir: runDir(t), Logger: log,
		Config: ports.Configuration{Name: "tape"},
	}
}

// run starts a plugin with habits and quick numbers, and stops it after the test.
func run(t testing.TB, log hclog.Logger, habits ...string) *Process {
	t.Helper()
	p := prepare(t, specOf(t, log, habits...))
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func prepare(t testing.TB, spec Spec) *Process {
	t.Helper()
	p, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	p.timing = quick
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// pidOf gives the running child. Never 0, which in a signal would mean the tests themselves.
func pidOf(t testing.TB, p *Process) int {
	t.Helper()
	s := p.Status()
	if s.PID == 0 {
		t.Fatalf("there is no child: %+v", s)
	}
	return s.PID
}

// eventually waits until something is so.
func eventually(t testing.TB, within time.Duration, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// freeze stops a process and waits until every thread of it stands.
func freeze(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the process stands", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			_, rest, _ := strings.Cut(string(stat), ") ")
			return err == nil && !strings.HasPrefix(rest, "T")
		})
	})
}

// alive says whether a process runs; a zombie that nobody reaps does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && syscall.Kill(pid, 0) == nil
}

func withTimeout(t testing.TB, limit time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), limit)
}

func put(ctx context.Context, p ports.Backend, key string) error {
	_, err := p.Put(ctx, ports.Batch{Family: ports.Queue, Rows: []ports.Row{{Kind: ports.KindItem, Key: key, Body: []byte("{}")}}})
	return err
}
