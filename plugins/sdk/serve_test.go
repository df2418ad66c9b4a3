package sdk_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/wire"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// Started with this argument the test binary is the plugin of an author who wrote nothing but Describe.
const asPlugin = "be-plugin"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asPlugin {
		sdk.Serve(tape{})
	}
	os.Exit(m.Run())
}

type tape struct{ ports.Backend }

func (tape) Describe(context.Context) (ports.Description, error) {
	return ports.Description{Kind: "tape", Version: "1.2", Summary: "Keeps history on tape.", Options: []ports.Option{
		{Name: "wait", Type: ports.OptionDuration, Default: "5s", Help: "how long a write waits for the drive"},
		{Name: "key", Type: ports.OptionString, Required: true, Secret: true, Help: "what the tape is sealed with"},
		{Name: "drive", Type: ports.OptionString, Required: true, Example: "/dev/st0", Help: "the tape drive"},
	}}, nil
}

func (tape) Close() error {
	sdk.Logger().Info("the tape is closed")
	return nil
}

func TestStartedByHandAPluginSaysWhatItIs(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, asPlugin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var exit *exec.ExitError
	if err := cmd.Run(); !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
	want := `NAME 1.2: a backend plugin of holdfast (protocol 1). It is started by holdfast, not by hand.
Keeps history on tape.

Name it in the configuration:

  backend "tape" "NAME" {
    plugin = "PATH"
    key = env("HOLDFAST_KEY")
    drive = "/dev/st0"
  }

Its options:

  key    string    required, secret  what the tape is sealed with
  drive  string    required          the tape drive
  wait   duration  default 5s        how long a write waits for the drive

holdfast plugin check PATH   tries whether it keeps the contract
holdfast config check   starts it for a moment and checks its options
`
	got := strings.ReplaceAll(strings.ReplaceAll(stderr.String(), self, "PATH"), filepath.Base(self), "NAME")
	if got != want || stdout.Len() != 0 {
		t.Errorf("stdout %q, stderr:\n%s", stdout.String(), got)
	}
}

func TestAPluginClosesAndExitsWhenItsHostIsGone(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, asPlugin)
	cmd.Env = []string{wire.CookieKey + "=" + wire.CookieValue, "PLUGIN_UNIX_SOCKET_DIR=" + dir, "PLUGIN_PROTOCOL_VERSIONS=1", "GORACE=atexit_sleep_ms=0"}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr := &strings.Builder{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 6)
	if _, err := io.ReadFull(stdout, line); err != nil || string(line) != "1|1|un" {
		t.Fatalf("the handshake begins with %q, %v", line, err)
	}
	began := time.Now()
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if !strings.Contains(stderr.String(), "the tape is closed") {
		t.Errorf("it was not closed: %s", stderr)
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %s", took)
	}
}
