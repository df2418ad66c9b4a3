package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Backends beside the local store: each is a SQLite file with a process and an executable of its own, so that a test may
// kill, freeze and take away one of them alone.

// Mirrored is a host with such backends, in the order in which reads ask them, before the local store.
func Mirrored(names ...string) Setup {
	var text strings.Builder
	fmt.Fprintf(&text, "route = [\"%s\", \"local\"]\n", strings.Join(names, `", "`))
	text.WriteString("backend \"sqlite\" \"local\" {\n  local = true\n}\n")
	for _, name := range names {
		fmt.Fprintf(&text, "backend \"sqlite\" %q {\n  path   = \"%s.db\"\n  plugin = \"bin/%s/%s\"\n}\n", name, name, name, sqlitePlugin)
	}
	return Setup{Config: text.String(), Plugins: names}
}

// File is the path of a SQLite backend's file.
func (h *Host) File(name string) string {
	if name == "local" {
		name = "history"
	}
	return filepath.Join(h.Data(), name+".db")
}

// Run runs a command of holdfast beside the host and gives what it printed and its exit code.
func (h *Host) Run(t testing.TB, args ...string) (out string, code int) {
	t.Helper()
	cmd := h.Beside(args...)
	text, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return string(text), cmd.ProcessState.ExitCode()
}

// Beside is Command for one that talks to the running host.
func (h *Host) Beside(args ...string) *exec.Cmd {
	cmd := h.Command(args...)
	cmd.Env = append(cmd.Env, "HOLDFAST_LISTEN="+h.listen, "HOLDFAST_DATA="+h.Data())
	return cmd
}

// Signal sends a signal to the process of one backend and says whether there was one.
func (h *Host) Signal(ctx context.Context, name string, signal syscall.Signal) bool {
	b, err := h.Backend(ctx, name)
	return err == nil && b.PID != 0 && syscall.Kill(b.PID, signal) == nil
}

// executable is that of a backend of Mirrored.
func (h *Host) executable(name string) string { return filepath.Join(h.bin, name, sqlitePlugin) }

// Hold takes a backend of Mirrored away: its executable is another one, which does nothing, and its process is killed. When it
// returns, a host that runs has noticed.
func (h *Host) Hold(t testing.TB, name string) {
	t.Helper()
	path := h.executable(name)
	if err := os.Rename(path, path+"-held"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	_, err := h.Backend(t.Context(), name)
	running := err == nil
	if err := await(func() error {
		pids := h.pidsOf(name)
		for _, pid := range pids { // again and again: one may just be started
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if len(pids) > 0 {
			return fmt.Errorf("processes of %s: %v", name, pids)
		}
		if !running {
			return nil
		}
		b, err := h.Backend(t.Context(), name)
		if err == nil && b.State == "bootstrapped" {
			err = fmt.Errorf("the status does not tell that %s is away", name)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// Free gives a backend that was held its executable back; the host notices by itself.
func (h *Host) Free(t testing.TB, name string) {
	t.Helper()
	path := h.executable(name)
	if err := os.Rename(path+"-held", path); err != nil {
		t.Fatal(err)
	}
}

// pidsOf lists the live processes of a backend of Mirrored.
func (h *Host) pidsOf(name string) (pids []int) {
	for _, list := range processes(filepath.Dir(h.executable(name))) {
		pids = append(pids, list...)
	}
	return pids
}

// AwaitEqual waits until every follower has everything that was acknowledged and nothing of it is unsettled or in doubt. A
// key that is in doubt takes a minute.
func (h *Host) AwaitEqual(t testing.TB) {
	t.Helper()
	h.awaitFollowers(t, 5*patience, true)
}

// AwaitCopied waits until every follower has everything that was acknowledged, some of it still in doubt or not.
func (h *Host) AwaitCopied(t testing.TB) {
	t.Helper()
	h.awaitFollowers(t, patience, false)
}

func (h *Host) awaitFollowers(t testing.TB, limit time.Duration, settled bool) {
	t.Helper()
	if err := awaitFor(limit, func() error { return h.copied(t.Context(), settled) }); err != nil {
		t.Fatalf("the followers do not become equal: %v\n%s", err, h.log.text())
	}
}

func (h *Host) copied(ctx context.Context, settled bool) error {
	s, err := h.Status(ctx)
	if err != nil {
		return err
	}
	for _, f := range s.Families {
		if f.Backlog > 0 {
			return fmt.Errorf("%s is at %d of %d", f.Family, f.Committed, f.Head)
		}
	}
	for _, b := range s.Backends {
		for _, f := range b.Followers {
			if f.Phase != "ready" || f.Behind > 0 || f.Unsettled+f.Discarded > 0 || settled && f.InDoubt > 0 {
				return fmt.Errorf("%s, %s is %s: behind by %d, %d unsettled, %d in doubt, %d discarded; %s", b.Name, f.Family, f.Phase, f.Behind, f.Unsettled, f.InDoubt, f.Discarded, f.Detail)
			}
		}
	}
	return nil
}

// Ask runs a command with --json and takes what it prints apart, whatever its exit code says of what it found.
func (h *Host) Ask(t testing.TB, into any, args ...string) (code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := h.Beside(append(args, "--json")...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	if code = cmd.ProcessState.ExitCode(); stdout.Len() == 0 {
		t.Fatalf("holdfast %s: exit code %d\n%s", strings.Join(args, " "), code, &stderr)
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		t.Fatalf("holdfast %s prints %s: %v", strings.Join(args, " "), &stdout, err)
	}
	return code
}

// Compared has two backends compared, record by record.
func (h *Host) Compared(t testing.TB, a, b string) (v Verification) {
	t.Helper()
	code := h.Ask(t, &v, "verify", a, b)
	if equal := v.Equal(); equal != (code == 0) || !equal && code != 1 || equal != (len(v.Differences) == 0) {
		t.Errorf("verify %s %s: exit code %d of %+v", a, b, code, v)
	}
	return v
}

// Verify is Compared for two backends that must be equal.
func (h *Host) Verify(t testing.TB, a, b string) {
	t.Helper()
	if v := h.Compared(t, a, b); !v.Equal() || v.Compared == 0 {
		t.Errorf("of %d records in both %d differ, %d are only in %s, %d only in %s; the first: %s", v.Compared, v.Different,
			v.OnlyA, a, v.OnlyB, b, v.Differences[:min(5, len(v.Differences))])
	}
}
