package languages_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"holdfast/internal/languages"
)

// A plugin gets next to nothing of the host's environment, so what an interpreter needs must come with it.
func TestThePythonThatATestGetsHasWhatAPluginNeeds(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), languages.Python(t).Command, "-c", "import grpc, google.protobuf as p; print(grpc.__version__, p.__version__)")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil || len(strings.Fields(string(out))) != 2 {
		t.Errorf("it says %s: %v", out, err)
	}
}

func TestTheNodeThatATestGetsRuns(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), languages.Node(t).Command, "-p", "process.version")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	if out, err := cmd.CombinedOutput(); err != nil || out[0] != 'v' {
		t.Errorf("it says %s: %v", out, err)
	}
}

func TestNothingIsLookedForTwice(t *testing.T) {
	t.Parallel()
	if first, second := languages.Python(t), languages.Python(t); first != second {
		t.Errorf("%s, then %s", first.Command, second.Command)
	}
}

func TestAProjectGetsItsModulesAndOneWithoutAnyIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	languages.Install(t, dir)
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("there are %v, %v", entries, err)
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile("../../plugins/templates/node/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/"+name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	languages.Install(t, dir)
	cmd := exec.CommandContext(t.Context(), languages.Node(t).Command, "-e", "require('@grpc/grpc-js'); require('protobufjs')")
	cmd.Dir, cmd.Env = dir, []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
