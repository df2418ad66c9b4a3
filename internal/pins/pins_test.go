package pins_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/pins"
	"holdfast/ports"
)

const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), pins.Name)
	if got, err := pins.Read(file); err != nil || len(got) != 0 {
		t.Errorf("without a file: %v, %v", got, err)
	}
	want := pins.Pins{"/b": sum, "/a b": sum, "/line\nbreak": sum, `/back\slash`: sum, `/back\nslash`: sum}
	for range 2 { // a new one takes the place of the old one
		if err := want.Write(file); err != nil {
			t.Fatal(err)
		}
	}
	got, err := pins.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*"))
	if len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

func TestTheFileIsOneThatSha256sumChecks(t *testing.T) {
	t.Parallel()
	tool, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("sha256sum is not here")
	}
	dir := t.TempDir()
	all := pins.Pins{}
	for _, name := range []string{"b", "a b", "line\nbreak", `back\slash`} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		all[path] = sum
	}
	file := filepath.Join(dir, pins.Name)
	if err := all.Write(file); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), tool, "--strict", "--quiet", "--check", file).CombinedOutput(); err != nil || len(text) != 0 {
		t.Errorf("%v\n%s", err, text)
	}
	if err := os.WriteFile(filepath.Join(dir, "b"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.CommandContext(t.Context(), tool, "--quiet", "--check", file).CombinedOutput(); err == nil {
		t.Errorf("a changed file passed: %s", text)
	}
}

func TestALineThatIsNoneIsToldWithItsPlace(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"# pins", "", sum, sum + " /one-blank", strings.ToUpper(sum) + "  /a", sum[:63] + "  /a"} {
		file := filepath.Join(t.TempDir(), pins.Name)
		if err := os.WriteFile(file, []byte(sum+"  /a\n"+line+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := pins.Read(file); ports.CodeOf(err) != ports.Invalid || !strings.Contains(err.Error(), pins.Name+":2 is no line") {
			t.Errorf("%q: %v", line, err)
		}
	}
}
