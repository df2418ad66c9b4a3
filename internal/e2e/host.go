package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Host is a running holdfast in a process of its own.
type Host struct {
	URL string

	dir    string // everything of this host: data, run directories, binaries
	bin    string
	binary string
	listen string
	setup  Setup

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{}
	hung   bool // a plugin hangs, so that an orderly end is not to be had
	log    tail
}

// Start starts a host with an empty data directory and waits until it is ready. At the end of the test it is stopped, and
// no process and no socket of it may be left.
func Start(t testing.TB) *Host {
	t.Helper()
	return StartWith(t, Setup{})
}

// StartWith is Start for a host that has something of its own.
func StartWith(t testing.TB, setup Setup) *Host {
	t.Helper()
	dir, err := os.MkdirTemp("", "hf") // short: sockets lie below it
	if err != nil {
		t.Fatal(err)
	}
	h := &Host{dir: dir, bin: filepath.Join(dir, "bin"), listen: freePort(t), setup: setup}
	h.URL = "http://" + h.listen
	t.Cleanup(func() {
		h.Stop(t)
		if t.Failed() {
			t.Logf("the end of the host's log:\n%s", h.log.text())
		}
		_ = os.RemoveAll(dir)
	})
	if h.binary, err = install(h.bin, setup.Plugins...); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "t"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := h.configure(); err != nil {
		t.Fatal(err)
	}
	if setup.Waits {
		h.Launch(t)
	} else {
		h.Restart(t)
	}
	return h
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Command prepares the host's binary with arguments, in the host's surroundings.
func (h *Host) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(h.binary, args...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Join(h.dir, "t"), "XDG_RUNTIME_DIR="+filepath.Join(h.dir, "t"), "HOLDFAST_CONFIG="+h.configFile(), "HOLDFAST_SERVER=")
	cmd.Env = append(cmd.Env, h.setup.Env...)
	return cmd
}

// Restart starts the host's process, on the data that is there, and waits until it is ready.
func (h *Host) Restart(t testing.TB) {
	t.Helper()
	h.launch(t)
	if err := await(h.ready); err != nil {
		t.Fatalf("the host is not ready: %v\n%s", err, h.log.text())
	}
}

func (h *Host) launch(t testing.TB) {
	t.Helper()
	cmd := h.Command("serve", "--listen", h.listen, "--data", h.Data())
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: h.setup.Group}
	cmd.Stdout, cmd.Stderr = &h.log, &h.log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { _ = cmd.Wait(); close(exited) }()
	h.mu.Lock()
	h.cmd, h.exited = cmd, exited
	h.mu.Unlock()
}

func (h *Host) ready() error { return h.answers("/readyz") }

func (h *Host) answers(path string) error {
	select {
	case <-h.exited:
		return fmt.Errorf("it ended: %v", h.cmd.ProcessState)
	default:
	}
	res, err := http.Get(h.URL + path)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, res.Status)
	}
	return nil
}

// Kill kills the host's process with SIGKILL, waits for its end, and leaves its plugins to notice.
func (h *Host) Kill() { h.end(syscall.SIGKILL) }

// end sends a signal and waits for the process to end; false when it did not in time and was killed.
func (h *Host) end(signal syscall.Signal) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd == nil {
		return true
	}
	_ = h.cmd.Process.Signal(signal)
	select {
	case <-h.exited:
		h.cmd = nil
		return true
	case <-time.After(patience):
		_ = h.cmd.Process.Kill()
		<-h.exited
		h.cmd = nil
		return false
	}
}

// Stop ends the host in an orderly way. Nothing may be left: no process, no socket.
func (h *Host) Stop(t testing.TB) {
	t.Helper()
	cmd := h.cmd
	if !h.end(syscall.SIGTERM) {
		t.Errorf("the host did not stop within %s of SIGTERM", patience)
	} else if cmd != nil && !h.hung && !cmd.ProcessState.Success() {
		t.Errorf("the host ended with %s", cmd.ProcessState)
	}
	if strings.Contains(h.log.text(), "DATA RACE") {
		t.Error("a race was seen")
	}
	h.Gone(t)
	if left := h.sockets(); len(left) > 0 {
		t.Errorf("sockets are left behind: %v", left)
	}
}

// Gone checks that after the host's end its plugins end by themselves.
func (h *Host) Gone(t testing.TB) {
	t.Helper()
	err := await(func() error {
		if left := processes(h.bin); len(left) > 0 {
			return fmt.Errorf("processes are left behind: %v", left)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
		h.KillPlugins()
	}
}

// tail keeps the end of what a process writes.
type tail struct {
	mu  sync.Mutex
	all []byte
}

func (l *tail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const most = 64 << 10
	if l.all = append(l.all, p...); len(l.all) > 2*most {
		l.all = bytes.Clone(l.all[len(l.all)-most:])
	}
	return len(p), nil
}

func (l *tail) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.all[max(0, len(l.all)-16<<10):])
}
