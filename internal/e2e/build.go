package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// built is where the host's binary is, its plugins in plugins/ beside it.
var built = sync.OnceValues(build)

func build() (binary string, err error) {
	if given := os.Getenv("HOLDFAST_BIN"); given != "" {
		return filepath.Abs(given)
	}
	mod, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	dir, err := os.MkdirTemp("", "hfbin")
	if err != nil {
		return "", err
	}
	buildDir = dir
	root := filepath.Dir(strings.TrimSpace(string(mod)))
	for out, pkg := range map[string]string{
		"holdfast": "./cmd/host", "plugins/" + sqlitePlugin: "./plugins/sqlite", "plugins/holdfast-backend-beacon": "./plugins/beacon",
		"plugins/holdfast-backend-postgres": "./plugins/postgres", "plugins/holdfast-backend-meadowproxy": "./plugins/meadowproxy",
	} {
		cmd := exec.Command("go", "build", "-o", filepath.Join(dir, out), pkg)
		cmd.Dir = root
		if text, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("build %s: %w\n%s", pkg, err, text)
		}
	}
	return filepath.Join(dir, "holdfast"), nil
}

// Plugin gives the executable of the SQLite plugin, as it is built with the host.
func Plugin(t testing.TB) string {
	t.Helper()
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(binary), "plugins", sqlitePlugin)
}

// buildDir is what Main removes.
var buildDir string

// Main runs a package's tests and removes what was built for them: func TestMain(m *testing.M) { e2e.Main(m) }. A package that
// builds something of its own says how that is removed.
func Main(m *testing.M, remove ...func()) {
	code := m.Run()
	for _, each := range remove {
		each()
	}
	if buildDir != "" {
		_ = os.RemoveAll(buildDir)
	}
	os.Exit(code)
}

// install gives a host binaries of its own, so that its processes can be told from those of every other host, and further
// copies of the SQLite plugin under some names.
func install(dir string, more ...string) (binary string, err error) {
	from, err := built()
	if err != nil {
		return "", err
	}
	files := []string{"holdfast"}
	plugins, err := filepath.Glob(filepath.Join(filepath.Dir(from), "plugins", "holdfast-backend-*"))
	if err != nil {
		return "", err
	}
	for _, p := range plugins {
		files = append(files, filepath.Join("plugins", filepath.Base(p)))
	}
	if err := os.MkdirAll(filepath.Join(dir, "plugins"), 0o700); err != nil {
		return "", err
	}
	for _, name := range files {
		source := filepath.Join(filepath.Dir(from), name)
		if name == "holdfast" {
			source = from
		}
		if err := place(source, filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	for _, name := range more {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return "", err
		}
		source := filepath.Join(filepath.Dir(from), "plugins", sqlitePlugin)
		if err := place(source, filepath.Join(dir, name, sqlitePlugin)); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "holdfast"), nil
}

const sqlitePlugin = "holdfast-backend-sqlite"

// place links a file, or copies it to another file system.
func place(from, to string) error {
	if os.Link(from, to) == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o700)
}
