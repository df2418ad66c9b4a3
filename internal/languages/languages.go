package languages

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// patience is how long fetching may take.
const patience = 5 * time.Minute

// Tool is an interpreter.
type Tool struct {
	Command string // its absolute path
}

// Path is the PATH of this process with the tool before everything else.
func (t Tool) Path() string {
	return filepath.Dir(t.Command) + string(os.PathListSeparator) + os.Getenv("PATH")
}

var (
	node   = sync.OnceValues(func() (Tool, error) { return locked(findNode) })
	python = sync.OnceValues(func() (Tool, error) { return locked(findPython) })
)

// Node gives a test the interpreter of JavaScript.
func Node(t testing.TB) Tool {
	t.Helper()
	tool, err := node()
	return had(t, tool, "node", err)
}

// Python gives a test an interpreter of Python that has grpc and protobuf.
func Python(t testing.TB) Tool {
	t.Helper()
	tool, err := python()
	return had(t, tool, "python3 with grpc", err)
}

func had(t testing.TB, tool Tool, what string, err error) Tool {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("HOLDFAST_OFFLINE") == "1":
		t.Skipf("skipped, because HOLDFAST_OFFLINE=1 and this machine has no %s: %v", what, err)
	default:
		t.Fatalf("this test needs %s, which could not be fetched: %v\nInstall it, or set HOLDFAST_OFFLINE=1 to leave such tests out.", what, err)
	}
	return tool
}

// locked runs one fetch at a time, whichever processes want one.
func locked[T any](fetch func(ctx context.Context, tools string) (T, error)) (none T, _ error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tools, err := toolsDir(ctx)
	if err != nil {
		return none, err
	}
	lock := flock.New(filepath.Join(tools, "languages.lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return none, fmt.Errorf("another test fetches for too long: %w", err)
	}
	defer func() { _ = lock.Close() }()
	return fetch(ctx, tools)
}

// toolsDir is .tools at the top of the repository.
func toolsDir(ctx context.Context) (string, error) {
	mod, err := run(ctx, ".", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(mod), ".tools")
	return dir, os.MkdirAll(dir, 0o755)
}

// run runs a command and gives what it printed; its error has the end of what it complained about.
func run(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("%w: %s", err, lastLines(exit.Stderr))
	}
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", filepath.Base(name), strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

func lastLines(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-5):], " / ")
}

// wrap writes a program that starts another one with what it needs.
func wrap(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755)
}
