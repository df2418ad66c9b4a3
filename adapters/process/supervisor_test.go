package process

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func TestAPluginThatKeepsFailingIsTriedMoreAndMoreRarely(t *testing.T) {
	t.Parallel()
	spec := specOf(t, hclog.NewNullLogger(), "exit")
	states := make(chan Status, 1000)
	spec.Notify = func(s Status) { states <- s }
	p := prepare(t, spec)
	p.Start()
	if err := p.Await(t.Context()); ports.CodeOf(err).Permanent() {
		t.Fatalf("what may pass is told as permanent: %v", err)
	}
	for s := range states {
		if s.State == GivenUp {
			if !strings.Contains(s.Detail, "exited with code 3") || !strings.Contains(s.Detail, "tried again at") || len(s.Words) == 0 {
				t.Errorf("status %+v", s)
			}
			break
		}
	}
	if err := p.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.BackendGone || !strings.Contains(err.Error(), "exited with code 3") {
		t.Errorf("a call meanwhile: %v", err)
	}
}

func TestANewFileEndsTheWait(t *testing.T) {
	t.Parallel()
	spec := script(t)
	install(t, spec.Path, "exit 1")
	p := prepare(t, spec)
	p.timing.base, p.timing.limit = time.Hour, time.Hour
	p.Start()
	if err := p.Await(t.Context()); err == nil {
		t.Fatal("it started")
	}
	install(t, spec.Path, "exec "+self(t)+" "+asPlugin)
	eventually(t, 5*time.Second, "it runs", func() bool { return p.Status().Running })
}

func TestAPluginThatComesLaterIsStartedAtOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(path string) error
		after  func(path string) error
	}{
		"missing, then installed": {os.Remove, nil},
		"not executable, then chmod +x": {
			func(path string) error { return os.Chmod(path, 0o644) },
			func(path string) error { return os.Chmod(path, 0o755) },
		},
		"in a folder for everybody, then chmod o-w": {
			func(path string) error { return os.Chmod(filepath.Dir(path), 0o777) },
			func(path string) error { return os.Chmod(filepath.Dir(path), 0o755) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := script(t)
			folder := filepath.Join(spec.RunDir, "d")
			if err := os.Mkdir(folder, 0o700); err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(spec.Path)
			if err != nil {
				t.Fatal(err)
			}
			put := func(path string) error {
				install(t, path, strings.TrimPrefix(string(text), "#!/bin/sh\n"))
				return nil
			}
			spec.Path = filepath.Join(folder, "p")
			_ = put(spec.Path)
			if err := c.before(spec.Path); err != nil {
				t.Fatal(err)
			}
			p := prepare(t, spec)
			p.timing.base, p.timing.limit = time.Hour, time.Hour
			p.Start()
			if err := p.Await(t.Context()); !ports.CodeOf(err).Permanent() {
				t.Fatalf("the first launch: %v", err)
			}
			if c.after == nil {
				c.after = put
			}
			if err := c.after(spec.Path); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "it runs", func() bool { return p.Status().Running })
		})
	}
}

func TestAPluginThatCannotStartIsLoggedOnce(t *testing.T) {
	t.Parallel()
	log := &journal{}
	spec := specOf(t, log.logger(hclog.Info), "exit")
	tries := make(chan struct{}, 1000)
	spec.Notify = func(s Status) {
		if s.State == Starting {
			tries <- struct{}{}
		}
	}
	p := prepare(t, spec)
	p.Start()
	for range 12 {
		<-tries
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	text := log.String()
	if n := strings.Count(text, "[ERROR] tape: plugin does not start; the host serves without it and tries again: error="); n != 1 {
		t.Errorf("%d errors:\n%s", n, text)
	}
	if n := strings.Count(text, "exited with code 3"); n > 2 { // and once more when it is given up
		t.Errorf("it is told %d times:\n%s", n, text)
	}
}

func TestAPluginThatKeepsDyingIsLoggedTwice(t *testing.T) {
	t.Parallel()
	log := &journal{}
	p := prepare(t, specOf(t, log.logger(hclog.Info)))
	p.timing.base, p.timing.limit = time.Millisecond, time.Hour
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deaths := range 8 {
		eventually(t, 10*time.Second, "it runs", func() bool { s := p.Status(); return s.Starts == deaths+1 && s.Running })
		if err := syscall.Kill(pidOf(t, p), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	p.Kill()
	text := log.String()
	if n := strings.Count(text, "plugin down: error="); n != 1 {
		t.Errorf("it is told %d times:\n%s", n, text)
	}
	if n := strings.Count(text, "plugin down again; it is started on and on"); n != 1 {
		t.Errorf("that it repeats itself is told %d times:\n%s", n, text)
	}
	if n := strings.Count(text, "plugin started"); n > 3 {
		t.Errorf("%d starts are told:\n%s", n, text)
	}
}

func TestTheLastWordsOfADeadPluginStayWhileTheNextOneRuns(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger())
	if err := put(t.Context(), p, "die loudly"); ports.CodeOf(err) != ports.BackendGone {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the next one runs", func() bool { s := p.Status(); return s.Running && s.Starts == 2 })
	s := p.Status()
	if s.Detail != "" || s.Died != "the plugin exited with code 2" || time.Since(s.DiedAt) > time.Minute || len(s.Words) == 0 || s.Words[0] != "panic: the reels fell off" {
		t.Errorf("status %+v", s)
	}
}

func TestASilentPluginIsToldAfterTheFirstCheckThatItDoesNotAnswer(t *testing.T) {
	t.Parallel()
	p := prepare(t, specOf(t, hclog.NewNullLogger()))
	p.timing.check, p.timing.answer = 4*time.Second, 200*time.Millisecond // so that only a call can bring the check forward
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	freeze(t, pid)
	began := time.Now()
	for p.Status().Detail == "" {
		short, cancel := withTimeout(t, 100*time.Millisecond)
		if err := put(short, p, "a"); ports.CodeOf(err) != ports.Deadline {
			t.Fatalf("a call into it: %v", err)
		}
		cancel()
		if time.Since(began) > 3*time.Second {
			t.Fatal("nothing is told")
		}
	}
	if s := p.Status(); !s.Running || !strings.HasPrefix(s.Detail, "has answered no health check for ") {
		t.Errorf("status %+v", s)
	}
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	eventually(t, 10*time.Second, "it is told as well again", func() bool { return p.Status().Detail == "" })
	if s := p.Status(); s.PID != pid {
		t.Errorf("status %+v", s)
	}
}

func TestALaunchThatHangsIsToldBeforeItsLimit(t *testing.T) {
	t.Parallel()
	for habit, detail := range map[string]string{
		"mute":            "still waits for its handshake",
		"describe-hangs":  "still waits for Describe",
		"configure-hangs": "still waits for Configure",
	} {
		t.Run(habit, func(t *testing.T) {
			t.Parallel()
			p := prepare(t, specOf(t, hclog.NewNullLogger(), habit))
			p.Start()
			eventually(t, 5*time.Second, "it is told", func() bool { return p.Status().Detail == detail })
			p.Kill()
		})
	}
}
