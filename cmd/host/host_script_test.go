package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/core"
)

// The scripts in testdata/host run a whole host: this binary, and the SQLite plugin built for them. $HOLDFAST_LISTEN is an
// address that nobody has; `ready` waits for the host that a script started there, `told` for a text in its status.
func TestHostScripts(t *testing.T) {
	t.Parallel()
	plugins := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(plugins, "holdfast-backend-sqlite"), "holdfast/plugins/sqlite")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	tape, err := exec.LookPath(before + "tape")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/host",
		Setup: func(env *testscript.Env) error {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			if err := inShortDir(env); err != nil {
				return err
			}
			env.Setenv("HOLDFAST_PLUGIN_DIR", plugins)
			env.Setenv("TAPE", tape)
			env.Setenv("HOLDFAST_LISTEN", l.Addr().String())
			return l.Close()
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"ready": awaitHost, "told": awaitStatus},
	})
}

// awaitHost waits until the host of a script is ready and the backends that are named have everything.
func awaitHost(ts *testscript.TestScript, _ bool, names []string) {
	await(ts, func(url string) error { return readiness(url, names) })
}

// awaitStatus waits until the status of a script's host has a text in it.
func awaitStatus(ts *testscript.TestScript, _ bool, text []string) {
	await(ts, func(url string) error {
		got, err := http.Get(url + "/v1/status")
		if err != nil {
			return err
		}
		defer got.Body.Close()
		status, err := io.ReadAll(got.Body)
		if err == nil && !strings.Contains(string(status), text[0]) {
			err = fmt.Errorf("it tells %s", status)
		}
		return err
	})
}

// await tries until there is no error.
func await(ts *testscript.TestScript, try func(url string) error) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was not asked")
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); <-tick.C {
		if last = try("http://" + ts.Getenv("HOLDFAST_LISTEN")); last == nil {
			return
		}
	}
	ts.Fatalf("the host is not so: %v", last)
}

// readiness says why a host or one of the backends is not ready.
func readiness(url string, names []string) error {
	got, err := http.Get(url + "/readyz")
	if err != nil {
		return err
	}
	got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return errors.New(strings.ToLower(got.Status))
	}
	if got, err = http.Get(url + "/v1/status"); err != nil {
		return err
	}
	defer got.Body.Close()
	var s core.Status
	if err := json.NewDecoder(got.Body).Decode(&s); err != nil {
		return err
	}
	for _, name := range names {
		i := slices.IndexFunc(s.Backends, func(b core.BackendStatus) bool { return b.Name == name })
		if i < 0 {
			return fmt.Errorf("no backend %s", name)
		}
		for _, f := range s.Backends[i].Followers {
			if f.Phase != "ready" || f.Behind > 0 {
				return fmt.Errorf("%s is %s: %s", name, f.Phase, f.Detail)
			}
		}
	}
	return nil
}
