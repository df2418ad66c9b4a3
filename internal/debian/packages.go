package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Unpack fetches Debian packages, with what they depend on and the machine has not installed, and unpacks them below a folder.
// Nothing is installed, so that it needs no rights: the lists and the archives are kept in the folder too.
func Unpack(ctx context.Context, dir string, packages ...string) (root string, err error) {
	for _, needed := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(needed); err != nil {
			return "", fmt.Errorf("this machine has no %s to fetch %v with; install them in its own way", needed, packages)
		}
	}
	root = filepath.Join(dir, "root")
	lists, cache := filepath.Join(dir, "lists"), filepath.Join(dir, "cache")
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	for _, d := range []string{root, filepath.Join(lists, "partial"), filepath.Join(cache, "archives", "partial")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return "", err
		}
	}
	apt := func(args ...string) error {
		_, err := Run(ctx, dir, "apt-get", append([]string{
			"-q", "-y", "-o", "Dir::State::lists=" + lists, "-o", "Dir::Cache=" + cache, "-o", "Debug::NoLocking=1",
			"-o", "APT::Sandbox::User=", "-o", "Acquire::Languages=none",
		}, args...)...)
		return err
	}
	if err := apt("update"); err != nil {
		return "", err
	}
	if err := apt(append([]string{"install", "--no-install-recommends", "--download-only"}, packages...)...); err != nil {
		return "", err
	}
	archives, err := filepath.Glob(filepath.Join(cache, "archives", "*.deb"))
	if err != nil {
		return "", err
	}
	if len(archives) == 0 {
		return "", fmt.Errorf("the machine has %v installed, and they do not work", packages)
	}
	for _, a := range archives {
		if _, err := Run(ctx, dir, "dpkg-deb", "-x", a, root); err != nil {
			return "", err
		}
	}
	return root, errors.Join(os.RemoveAll(lists), os.RemoveAll(cache))
}

// Install installs Debian packages on this machine, which takes a root, as a CI machine has.
func Install(ctx context.Context, dir string, packages ...string) error {
	if os.Getuid() != 0 {
		return fmt.Errorf("only root can install %v here", packages)
	}
	if _, err := Run(ctx, dir, "apt-get", "-q", "update"); err != nil {
		return err
	}
	_, err := Run(ctx, dir, "apt-get", append([]string{"-q", "-y", "install", "--no-install-recommends"}, packages...)...)
	return err
}

// Libraries is the folder of the libraries that were unpacked with a program: its LD_LIBRARY_PATH, "" where there are none.
func Libraries(root string) string {
	found, err := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu"))
	if err != nil || len(found) == 0 {
		return ""
	}
	return found[0]
}
