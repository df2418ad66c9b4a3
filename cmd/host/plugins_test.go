package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/ports"
)

// answering answers for each plugin by its backend's kind.
func answering(answers map[string]said) describeFunc {
	return func(ctx context.Context, spec process.Spec) (ports.Description, error) {
		a, known := answers[strings.TrimPrefix(filepath.Base(spec.Path), before)]
		if !known {
			<-ctx.Done()
			return ports.Description{}, ctx.Err()
		}
		return a.Description, a.err
	}
}

func TestOnlyWhatIsWrongWithTheFileOrTheLocalStoreStopsAStart(t *testing.T) {
	t.Parallel()
	tape := ports.Description{Kind: "tape", Options: []ports.Option{{Name: "drive", Type: ports.OptionString}, {Name: "timeout", Type: ports.OptionDuration}}}
	const local = "backend \"sqlite\" \"local\" {\n  local = true\n}\n"
	for _, c := range []struct {
		name, text string
		answers    map[string]said
		wrong      string // a part of the error
	}{
		{"all answer", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, ""},
		{"a follower's plugin is not there", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {err: errors.New("no such file")}}, ""},
		{"a follower's plugin hangs", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}}, ""},
		{"a follower's plugin is of another kind", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: sqlite}}, `of the kind "sqlite"`},
		{"an option of a follower is wrong", local + "backend \"tape\" \"archive\" {\n  driv = \"x\"\n}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, `Did you mean "drive"?`},
		{"two are in one place", local + "backend \"sqlite\" \"mirror\" {}\n", map[string]said{"sqlite": {Description: sqlite}}, "in the same place"},
		{"two would go to the same peer", local + "backend \"tape\" \"one\" {}\nbackend \"tape\" \"two\" {\n  timeout = \"2s\"\n}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, `Give "two" another drive`},
		{"two go to peers of their own", local + "backend \"tape\" \"one\" {}\nbackend \"tape\" \"two\" {\n  drive = \"b\"\n}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, ""},
		{"the local store's plugin is not there", local, map[string]said{"sqlite": {err: errors.New("no such file")}}, `backend "local" does not start`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := &invocation{program: program{describe: answering(c.answers), stderr: io.Discard}, globals: globals{ConfigFile: configFile(t, c.text)}, ctx: t.Context()}
			cfg, err := in.load(nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := in.checkToServe(cfg); (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Error(err)
			}
		})
	}
}

func TestWithoutALimitInTheFileAPluginHasTheOneOfProcess(t *testing.T) {
	t.Parallel()
	if config.DefaultMemory != process.DefaultMemory {
		t.Errorf("%d bytes by the configuration, %d by process", config.DefaultMemory, process.DefaultMemory)
	}
}
