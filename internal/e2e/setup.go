package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Setup is what a host has of its own. The zero value is what Start takes.
type Setup struct {
	Data   string   // its data directory; "" for a new one that is removed at the end
	Config string   // the text of its configuration file
	Env    []string // more of its environment, as KEY=VALUE
	Group  bool     // a process group of its own, as a shell gives it
	Waits  bool     // it is not ready after its start: its local store needs a person

	// Plugins are further copies of the SQLite plugin, so that a backend may have an executable of its own, which Hold takes
	// away: plugin = "bin/NAME/holdfast-backend-sqlite".
	Plugins []string
}

func (h *Host) configure() error {
	if h.setup.Config == "" {
		return nil
	}
	return os.WriteFile(h.configFile(), []byte(h.setup.Config), 0o600)
}

func (h *Host) configFile() string {
	if h.setup.Config == "" {
		return ""
	}
	return filepath.Join(h.dir, "test.hcl")
}

// Launch starts the host's process and waits only until it answers at all.
func (h *Host) Launch(t testing.TB) {
	t.Helper()
	h.launch(t)
	if err := await(func() error { return h.answers("/livez") }); err != nil {
		t.Fatalf("the host does not answer: %v\n%s", err, h.log.text())
	}
}

// Data is the host's data directory.
func (h *Host) Data() string {
	if h.setup.Data != "" {
		return h.setup.Data
	}
	return filepath.Join(h.dir, "data")
}

// Log is the end of what the host wrote.
func (h *Host) Log() string {
	h.log.mu.Lock()
	defer h.log.mu.Unlock()
	return string(h.log.all)
}

// Processes lists the live processes of the host and its plugins.
func (h *Host) Processes() (pids []int) {
	for _, list := range processes(h.bin) {
		pids = append(pids, list...)
	}
	return pids
}

// End sends a signal to the host's process, or to its whole group, and gives the exit code; -1 when it had to be killed.
func (h *Host) End(signal syscall.Signal, group bool) int {
	h.mu.Lock()
	cmd := h.cmd
	h.mu.Unlock()
	if group {
		_ = syscall.Kill(-cmd.Process.Pid, signal)
		signal = 0
	}
	if !h.end(signal) {
		return -1
	}
	return cmd.ProcessState.ExitCode()
}

// Await tries until there is no error, a bounded time.
func Await(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := await(try); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
