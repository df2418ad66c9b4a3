package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestTheModuleIsFoundBesideTheBinaryThatWasBuiltInIt(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{
		"module/go.mod": "module holdfast\n\ngo 1.26\n", "module/bin/holdfast": "", "other/go.mod": "module example.org/holdfast\n", "other/bin/holdfast": "",
	} {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(root, "holdfast")
	if err := os.Symlink(filepath.Join(root, "module", "bin", "holdfast"), link); err != nil {
		t.Fatal(err)
	}
	module := filepath.Join(root, "module")
	for binary, want := range map[string]string{
		filepath.Join(module, "bin", "holdfast"): module,
		filepath.Join(module, "go.mod"):          module, // whatever stands in the module's own folder
		link:                                     module,
		filepath.Join(root, "other", "bin", "holdfast"): "",
	} {
		got, err := moduleBeside(binary, nil)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", binary, got, err)
		}
	}
	if _, err := moduleBeside("", errors.New("nobody knows")); err == nil {
		t.Error("a binary that nobody knows has a module")
	}
}
