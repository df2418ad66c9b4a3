package languages

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// findNode takes node and npm as the machine has them, or unpacks Debian's packages.
func findNode(ctx context.Context, tools string) (Tool, error) {
	dir := filepath.Join(tools, "debian-nodejs")
	wrapped := filepath.Join(dir, "bin", "node")
	for _, known := range []string{wrapped, inPath("node")} {
		if known == "" {
			continue
		}
		_, err := run(ctx, tools, known, "-e", "process.exit(parseInt(process.versions.node) < 14 ? 1 : 0)")
		if err == nil && npmOf(known) != "" {
			return Tool{Command: known}, nil
		}
	}
	root, err := unpack(ctx, dir, "nodejs", "npm")
	if err != nil {
		return Tool{}, err
	}
	shared := filepath.Join(root, "usr/share/nodejs")
	interpreter := filepath.Join(root, "usr/bin/node")
	if _, err := os.Stat(interpreter); err != nil {
		interpreter = inPath("node") // only npm was missing
	}
	err = errors.Join(
		wrap(wrapped, libraries(root)+"exec "+interpreter+" \"$@\""),
		wrap(filepath.Join(dir, "bin", "npm"), libraries(root)+"export NODE_PATH='"+shared+"'\nexec "+interpreter+" '"+shared+"/npm/bin/npm-cli.js' \"$@\""))
	if err != nil {
		return Tool{}, err
	}
	_, err = run(ctx, tools, wrapped, "-e", "0")
	return Tool{Command: wrapped}, err
}

// npmOf is the npm that belongs to a node.
func npmOf(node string) string {
	beside := filepath.Join(filepath.Dir(node), "npm")
	if _, err := os.Stat(beside); err == nil {
		return beside
	}
	return inPath("npm")
}

// Install gives the Node project in a folder what its package-lock.json names. What was fetched once is kept by the content of that
// file. A folder without one is left as it is.
func Install(t testing.TB, dir string) {
	t.Helper()
	lock, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	tool := Node(t)
	modules, err := locked(func(ctx context.Context, tools string) (string, error) {
		return modulesOf(ctx, tools, npmOf(tool.Command), dir, lock)
	})
	had(t, tool, "the npm packages of "+dir, err)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

func modulesOf(ctx context.Context, tools, npm, dir string, lock []byte) (string, error) {
	kept := filepath.Join(tools, fmt.Sprintf("node-modules-%.6x", sha256.Sum256(lock)))
	modules := filepath.Join(kept, "node_modules")
	if _, err := os.Stat(modules); err == nil {
		return modules, nil
	}
	fresh, err := os.MkdirTemp(tools, "npm-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(fresh)
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(fresh, name), text, 0o600); err != nil {
			return "", err
		}
	}
	if _, err := run(ctx, fresh, npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	return modules, os.Rename(fresh, kept)
}
