package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"holdfast/internal/debian"
)

// programs are the folder of PostgreSQL's programs and that of the libraries that came with them.
type programs struct {
	bin       string
	libraries string
}

var postgres = sync.OnceValues(findPostgres)

// findPostgres takes the machine's newest PostgreSQL, or unpacks Debian's.
func findPostgres() (programs, error) {
	if bin := installed("/"); bin != "" {
		return programs{bin: bin}, nil
	}
	root, err := unpacked("postgresql", func(root string) bool { return installed(root) != "" })
	if err != nil {
		return programs{}, err
	}
	return programs{bin: installed(root), libraries: debian.Libraries(root)}, nil
}

// needed are the programs without which a folder is of no use.
var needed = []string{"initdb", "postgres", "pg_basebackup", "pg_ctl"}

// installed gives the folder of programs of a machine, or of packages unpacked at root; "" when there is none. The PATH comes
// first: who put one there wants that one. Links are followed, because PostgreSQL finds its other files from where it lies.
func installed(root string) string {
	var candidates []string
	if root == "/" {
		if path, err := exec.LookPath("postgres"); err == nil {
			if path, err = filepath.EvalSymlinks(path); err == nil {
				candidates = append(candidates, filepath.Dir(path))
			}
		}
		if out, err := exec.Command("pg_config", "--bindir").Output(); err == nil {
			candidates = append(candidates, strings.TrimSpace(string(out)))
		}
	}
	versions, err := filepath.Glob(filepath.Join(root, "usr/lib/postgresql/*/bin"))
	if err == nil {
		slices.SortFunc(versions, func(a, b string) int { return cmp.Compare(versionOf(b), versionOf(a)) })
		candidates = append(candidates, versions...)
	}
	for _, dir := range candidates {
		if !slices.ContainsFunc(needed, func(name string) bool { return !executable(filepath.Join(dir, name)) }) {
			return dir
		}
	}
	return ""
}

// versionOf reads the version out of .../postgresql/15/bin.
func versionOf(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// unpacked gives the folder in which a Debian package is unpacked, fetching it if it is not there yet. A root gets it where the
// user that runs its servers can read it.
func unpacked(name string, whole func(root string) bool) (root string, err error) {
	return debian.Fetch(func(ctx context.Context, tools string) (string, error) {
		dir := filepath.Join(tools, "debian-"+name)
		if root := filepath.Join(dir, "root"); whole(root) {
			return readable(root, name)
		}
		root, err := debian.Unpack(ctx, dir, name)
		if err != nil {
			return "", err
		}
		if !whole(root) {
			return "", errors.New("Debian's package " + name + " has not the programs that it should have")
		}
		return readable(root, name)
	})
}

// readable gives a folder that the user of the servers can read: the same one, or a copy where a root keeps the repository in a
// folder of its own.
func readable(root, name string) (string, error) {
	if os.Geteuid() != 0 || openToAll(root) {
		return root, nil
	}
	k, err := keeping()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(k.base, name)
	if err := os.CopyFS(dir, os.DirFS(root)); err != nil {
		return "", fmt.Errorf("copy %s to where its user can read it: %w", name, err)
	}
	return dir, nil
}

// openToAll says whether every folder on the way to a path may be passed by everybody.
func openToAll(path string) bool {
	for {
		info, err := os.Stat(path)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if path == filepath.Dir(path) {
			return true
		}
		path = filepath.Dir(path)
	}
}
