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

	"holdfast/internal/debian"
)

// findNode takes node and npm as the machine has them, or else installs Debian's: they look for their own parts below /usr, so that
// nothing less will do.
func findNode(ctx context.Context, tools string) (Tool, error) {
	if known := nodeThere(ctx, tools); known != "" {
		return Tool{Command: known}, nil
	}
	if err := debian.Install(ctx, tools, "nodejs", "npm"); err != nil {
		return Tool{}, err
	}
	known := nodeThere(ctx, tools)
	if known == "" {
		return Tool{}, errors.New("nodejs and npm are installed, and they do not work")
	}
	return Tool{Command: known}, nil
}

// nodeThere gives the machine's node, if it is a new enough one and has an npm.
func nodeThere(ctx context.Context, tools string) string {
	known := inPath("node")
	if known == "" || inPath("npm") == "" {
		return ""
	}
	if _, err := debian.Run(ctx, tools, known, "-e", "process.exit(parseInt(process.versions.node) < 14 ? 1 : 0)"); err != nil {
		return ""
	}
	return known
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
	modules, err := debian.Fetch(func(ctx context.Context, tools string) (string, error) {
		return modulesOf(ctx, tools, dir, lock)
	})
	had(t, tool, "the npm packages of "+dir, err)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
}

func modulesOf(ctx context.Context, tools, dir string, lock []byte) (string, error) {
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
	if _, err := debian.Run(ctx, fresh, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	return modules, os.Rename(fresh, kept)
}
