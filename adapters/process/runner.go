//go:build unix

package process

import (
	"context"
	"io"
	"os/exec"
	"strconv"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin/runner"
)

// adapter is a program as go-plugin's client sees it. go-plugin gets the handshake line as the whole of stdout and nothing
// of stderr, where one odd line would crash the host.
type adapter struct {
	*program
	env []string
}

var _ runner.Runner = (*adapter)(nil)

// runnerOf makes the function that go-plugin asks for a runner; cmd holds the handshake's environment and nothing else.
func runnerOf(p *program, level hclog.Level) func(hclog.Logger, *exec.Cmd, string) (runner.Runner, error) {
	return func(_ hclog.Logger, cmd *exec.Cmd, _ string) (runner.Runner, error) {
		return &adapter{program: p, env: environment(cmd.Env, level)}, nil
	}
}

func (a *adapter) Start(context.Context) error {
	if err := a.start(a.env); err != nil {
		return &startError{cause: err}
	}
	if err := a.files.unchanged(); err != nil {
		a.kill()
		return &startError{cause: err}
	}
	return nil
}

func (a *adapter) Wait(ctx context.Context) error {
	select {
	case <-a.exited:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *adapter) Kill(context.Context) error {
	a.kill()
	return nil
}

func (a *adapter) Stdout() io.ReadCloser { return a.handshake }
func (a *adapter) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }
func (a *adapter) Name() string          { return a.path }

// ID is "" before the start, which go-plugin takes for "nothing to kill".
func (a *adapter) ID() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pid == 0 {
		return ""
	}
	return strconv.Itoa(a.pid)
}

// Diagnose adds nothing; failure.go says what went wrong.
func (a *adapter) Diagnose(context.Context) string { return "" }

// The program runs where the host runs, so addresses mean the same to both.
func (a *adapter) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

func (a *adapter) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
