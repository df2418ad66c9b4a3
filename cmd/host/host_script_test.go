package main

import (
	"errors"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts in testdata/host run a whole host: this binary, and the SQLite plugin built for them. $HOLDFAST_LISTEN is an
// address that nobody has; `ready` waits for the host that a script started there.
func TestHostScripts(t *testing.T) {
	t.Parallel()
	plugins := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(plugins, "holdfast-backend-sqlite"), "holdfast/plugins/sqlite")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/host",
		Setup: func(env *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			short, err := os.MkdirTemp("", "hf") // the paths of sockets have to be short
			if err != nil {
				return err
			}
			env.Defer(func() { _ = os.RemoveAll(short) })
			env.Setenv("TMPDIR", short)
			env.Setenv("HOLDFAST_PLUGIN_DIR", plugins)
			env.Setenv("HOLDFAST_LISTEN", l.Addr().String())
			return l.Close()
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"ready": awaitHost},
	})
}

// awaitHost waits until the host of a script is ready.
func awaitHost(ts *testscript.TestScript, _ bool, _ []string) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was not asked")
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		got, err := http.Get("http://" + ts.Getenv("HOLDFAST_LISTEN") + "/readyz")
		if err != nil {
			last = err
			continue
		}
		got.Body.Close()
		if got.StatusCode == http.StatusOK {
			return
		}
		last = errors.New(strings.ToLower(got.Status))
	}
	ts.Fatalf("the host is not ready: %v", last)
}
