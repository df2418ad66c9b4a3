package templates_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"holdfast/plugins/templates"
	"holdfast/ports"
)

const source = "../.." // of this module

// sizes are what an author finds in his folder: few files, and few enough lines to read them all.
var sizes = map[string]struct {
	files []string
	code  string // what the lines are counted of
	lines int
}{
	templates.Go:     {[]string{"README.md", "go.mod", "go.sum", "main.go", "store.go", "store_test.go"}, ".go", 90},
	templates.Node:   {[]string{"README.md", "backend.proto", "package-lock.json", "package.json", "plugin.js"}, ".js", 120},
	templates.Python: {[]string{"README.md", "backend.binpb", "plugin.py"}, ".py", 140},
}

func render(t *testing.T, o templates.Options) map[string]templates.File {
	t.Helper()
	files, err := templates.Render(o)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]templates.File{}
	for _, f := range files {
		all[f.Path] = f
	}
	return all
}

func TestAProjectIsShortEnoughToBeReadWhole(t *testing.T) {
	t.Parallel()
	for lang, want := range sizes {
		lines, longest := 0, 0
		var names []string
		for _, f := range render(t, templates.Options{Name: "tape", Lang: lang, Source: source}) {
			names = append(names, f.Path)
			if filepath.Ext(f.Path) != want.code {
				continue
			}
			for line := range bytes.Lines(f.Text) {
				lines++
				longest = max(longest, len(bytes.ReplaceAll(line, []byte("\t"), []byte("    "))))
			}
		}
		if lines > want.lines || lines < want.lines/2 || longest > 160 {
			t.Errorf("%s has %d lines, the longest of %d characters", lang, lines, longest)
		}
		if slices.Sort(names); !slices.Equal(names, want.files) {
			t.Errorf("%s has the files %q", lang, names)
		}
	}
}

func TestAProjectIsOfTheKindThatWasAskedFor(t *testing.T) {
	t.Parallel()
	for _, lang := range templates.Langs {
		for path, f := range render(t, templates.Options{Name: "paper_1-a", Lang: lang, Source: source}) {
			if bytes.Contains(bytes.ToLower(f.Text), []byte("tape")) && path != "backend.proto" && path != "go.sum" {
				t.Errorf("%s of %s still speaks of a tape", path, lang)
			}
		}
	}
	files := render(t, templates.Options{Name: "paper", Lang: templates.Go, Source: source})
	if text := string(files["store.go"].Text); !strings.Contains(text, `Kind: "paper"`) {
		t.Error("store.go does not say its kind")
	}
	if text := string(files["go.mod"].Text); !strings.HasPrefix(text, "module holdfast-backend-paper\n") {
		t.Errorf("go.mod begins with %.40q; go build would not make what the host looks for", text)
	}
}

func TestAScriptCanBeStarted(t *testing.T) {
	t.Parallel()
	for lang, script := range map[string]string{templates.Node: "plugin.js", templates.Python: "plugin.py"} {
		if f := render(t, templates.Options{Name: "tape", Lang: lang})[script]; f.Mode != 0o755 || !bytes.HasPrefix(f.Text, []byte("#!/usr/bin/env ")) {
			t.Errorf("%s has the mode %o", script, f.Mode)
		}
	}
}

// The contract in a project is that of this holdfast, in each form.
func TestAProjectHasTheContractOfThisHoldfast(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../proto/holdfast/backend/v1/backend.proto")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(render(t, templates.Options{Name: "tape", Lang: templates.Node})["backend.proto"].Text, text) {
		t.Error("backend.proto of a Node project is another one")
	}
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(render(t, templates.Options{Name: "tape", Lang: templates.Python})["backend.binpb"].Text, &set); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, f := range set.File {
		for _, needed := range f.Dependency {
			if !seen[needed] {
				t.Errorf("%s stands before %s, which it needs", f.GetName(), needed)
			}
		}
		seen[f.GetName()] = true
	}
	if !seen["holdfast/backend/v1/backend.proto"] || !seen["google/rpc/status.proto"] {
		t.Errorf("the set has %v", seen)
	}
}

func TestWhatCannotBeRenderedIsTold(t *testing.T) {
	t.Parallel()
	empty := t.TempDir()
	for _, c := range []struct {
		o     templates.Options
		field string
	}{
		{templates.Options{Name: "Tape", Lang: templates.Node}, "name"},
		{templates.Options{Name: "", Lang: templates.Node}, "name"},
		{templates.Options{Name: "../tape", Lang: templates.Node}, "name"},
		{templates.Options{Name: strings.Repeat("t", 65), Lang: templates.Node}, "name"},
		{templates.Options{Name: "tape", Lang: "cobol"}, "lang"},
		{templates.Options{Name: "tape", Lang: templates.Go}, "source"},
		{templates.Options{Name: "tape", Lang: templates.Go, Source: empty}, "source"},
	} {
		_, err := templates.Render(c.o)
		if ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != c.field {
			t.Errorf("%+v: %v", c.o, err)
		}
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "tape")
	files := []templates.File{{Path: "a", Mode: 0o644, Text: []byte("1")}, {Path: "b", Mode: 0o755, Text: []byte("2")}}
	if err := templates.Write(dir, files[1:]); err != nil {
		t.Fatal(err)
	}
	if err := templates.Write(dir, files); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("a second one: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "a")); err == nil {
		t.Error("a part of it was written")
	}
	info, err := os.Stat(filepath.Join(dir, "b"))
	if err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("b is %v, %v", info, err)
	}
}
