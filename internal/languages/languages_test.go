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
