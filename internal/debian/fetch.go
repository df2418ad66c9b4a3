package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// patience is how long fetching may take.
const patience = 5 * time.Minute

// Need ends a test that cannot have a program: it fails and says why. With HOLDFAST_OFFLINE=1 it is skipped instead, for a machine
// without a network.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	switch {
	case err == nil:
	case os.Getenv("HOLDFAST_OFFLINE") == "1":
		t.Skipf("skipped, because HOLDFAST_OFFLINE=1 and this machine has no %s: %v", what, err)
	default:
		t.Fatalf("this test needs %s, which could not be fetched: %v\nInstall it, or set HOLDFAST_OFFLINE=1 to leave such tests out.", what, err)
	}
}

// Fetch runs one fetch at a time, whichever processes want one. It is given .tools at the top of the repository.
func Fetch[T any](fetch func(ctx context.Context, tools string) (T, error)) (none T, _ error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tools, err := toolsDir(ctx)
	if err != nil {
		return none, err
	}
	lock := flock.New(filepath.Join(tools, "fetch.lock"))
	if _, err := lock.TryLockContext(ctx, 100*time.Millisecond); err != nil {
		return none, fmt.Errorf("another test fetches for too long: %w", err)
	}
	defer func() { _ = lock.Close() }()
	return fetch(ctx, tools)
}

func toolsDir(ctx context.Context) (string, error) {
	mod, err := Run(ctx, ".", "go", "env", "GOMOD")
	if err != nil {
		return "", err
	}
	dir := filepath.Join(filepath.Dir(mod), ".tools")
	return dir, os.MkdirAll(dir, 0o755)
}

// Run runs a command and gives what it printed; its error has the end of what it complained about.
func Run(ctx context.Context, dir, name string, args ...string) (string, error) {
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
