package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast/adapters/process"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// The scripts in testdata/script run the real binary: this test binary under another name.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"holdfast": main, before + "tape": serveTape, "bare-plugin": serveBare})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	tape, err := exec.LookPath(before + "tape")
	if err != nil {
		t.Fatal(err)
	}
	module, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("TAPE", tape)
			env.Setenv("MODULE", module)
			return inShortDir(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){"same": sameText},
	})
}

// inShortDir gives a script a folder for its sockets, whose paths have to be short.
func inShortDir(env *testscript.Env) error {
	short, err := os.MkdirTemp("", "hf")
	if err != nil {
		return err
	}
	env.Defer(func() { _ = os.RemoveAll(short) })
	env.Setenv("TMPDIR", short)
	return nil
}

// sameText holds what was printed last against a file, in which $NAME is a variable of the script. Numbers that say how long
// something took are N; with a third word the columns are two blanks apart, however wide they are.
func sameText(ts *testscript.TestScript, _ bool, args []string) {
	got := regexp.MustCompile(`\b\d+(\.\d+)?(ms|s)\b`).ReplaceAllString(ts.ReadFile(args[0]), "Ns")
	if len(args) > 2 {
		got = regexp.MustCompile(`(\S) {2,}`).ReplaceAllString(got, "$1  ")
	}
	want := os.Expand(ts.ReadFile(args[1]), ts.Getenv)
	if got != want {
		ts.Fatalf("%s says:\n%s\nand not:\n%s", args[0], got, want)
	}
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
