package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/adapters/process"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// The scripts in testdata/script run the real binary: this test binary under another name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"holdfast": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{Dir: "testdata/script"})
}

// outcome is what one run of the program left.
type outcome struct {
	code           int
	stdout, stderr string
}

func runProgram(t *testing.T, describe describeFunc, args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	p := program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, describe: describe}
	code := p.run(t.Context(), args)
	return outcome{code, stdout.String(), stderr.String()}
}

// described answers for a plugin without starting one.
func described(d ports.Description, err error) describeFunc {
	return func(context.Context, process.Spec) (ports.Description, error) { return d, err }
}

func TestHelpIsTheSameBothWays(t *testing.T) {
	t.Parallel()
	for _, c := range [][2][]string{
		{{"help"}, {"--help"}},
		{{"help", "config"}, {"config", "--help"}},
		{{"help", "config", "check"}, {"config", "check", "--help"}},
	} {
		word, flag := runProgram(t, nil, c[0]...), runProgram(t, nil, c[1]...)
		if word != flag || word.code != exitcode.OK || !strings.HasPrefix(word.stdout, "Usage: holdfast ") || word.stderr != "" {
			t.Errorf("%v: %+v\n%v: %+v", c[0], word, c[1], flag)
		}
	}
}

func TestEveryCommandHasHelp(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(runProgram(t, nil, "help").stdout) {
		name, ok := strings.CutPrefix(line, "  ")
		if !ok || strings.HasPrefix(name, " ") || strings.HasPrefix(name, "-") {
			continue
		}
		name, about, _ := strings.Cut(strings.TrimSpace(name), "  ")
		if strings.TrimSpace(about) == "" {
			t.Errorf("%q has no help", name)
		}
	}
}

func TestAWrongCommandLineIsUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"srve"}, {"config"}, {"config", "shw"}, {"version", "--loud"}, {"--config"}, {"version", "more"}} {
		got := runProgram(t, nil, args...)
		if got.code != exitcode.Usage || got.stdout != "" || !strings.HasPrefix(got.stderr, "holdfast: ") {
			t.Errorf("%v: %+v", args, got)
		}
	}
}

func TestTheErrorDecidesTheExitCode(t *testing.T) {
	t.Parallel()
	if got := runProgram(t, described(ports.Description{}, errors.New("no plugin")), "config", "check"); got.code != exitcode.Environment {
		t.Errorf("%+v", got)
	}
	if got := runProgram(t, nil, "--log-level=loud", "config", "check"); got.code != exitcode.Usage {
		t.Errorf("%+v", got)
	}
}
