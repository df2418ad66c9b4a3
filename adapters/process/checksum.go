//go:build unix

package process

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"holdfast/ports"
)

// Files gives what a plugin is started from, as absolute paths: its executable, and each argument that names a file, which
// for an interpreter is the plugin itself. What such a file loads on its own is not known here; whoever wants it pinned adds
// it to Checksums.
func (s *Spec) Files() ([]string, error) {
	path, err := findExecutable(s.Path)
	if err != nil {
		return nil, err
	}
	files := []string{absolute(path)}
	for _, arg := range s.Args {
		if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
			files = append(files, absolute(arg))
		}
	}
	return files, nil
}

func absolute(path string) string {
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// Sum gives the SHA-256 of a file's bytes in hex, as Spec.Checksums wants it.
func Sum(path string) (string, error) {
	sum, _, err := sumOf(path)
	return sum, err
}

// sumOf also tells which file it was that was read.
func sumOf(path string) (sum string, seen sight, err error) {
	info, err := os.Stat(path) // a pipe would never open
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", seen, unusable(path, "does not exist, so it has no checksum")
	case err != nil:
		return "", seen, unusable(path, "cannot be looked at: %v", errors.Unwrap(err))
	case info.IsDir():
		return "", seen, unusable(path, "is a folder, which has no checksum; name the executable in it")
	case !info.Mode().IsRegular():
		return "", seen, unusable(path, "is no ordinary file, so it has no checksum")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", seen, unusable(path, "cannot be read for its checksum: %v", errors.Unwrap(err))
	}
	defer f.Close()
	if seen, err = sightOfFile(f); err != nil {
		return "", seen, ports.Errorf(ports.Unavailable, "", "%s cannot be looked at: %v", path, err)
	}
	hash := sha256.New()
	size, err := io.Copy(hash, f)
	if err != nil {
		return "", seen, ports.Errorf(ports.Unavailable, "", "%s cannot be read for its checksum: %v", path, err)
	}
	if size == 0 {
		return "", seen, unusable(path, "is an empty file, which has no checksum worth to be pinned")
	}
	return hex.EncodeToString(hash.Sum(nil)), seen, nil
}

// pinned is what was read when the checksums were compared.
type pinned map[string]sight

// checkSums holds every file of a plugin against its checksum, anew for each launch. The kernel opens the files a second time
// when it starts the plugin, so unchanged has to be asked after that. What remains: a program put there in between runs until
// then, for a few milliseconds, as this user; and only this user or root can put it there, see CheckKeepers.
func checkSums(spec *Spec, files []string) (pinned, error) {
	if spec.Checksums == nil {
		return nil, nil
	}
	sums, err := spec.Checksums()
	if err != nil {
		return nil, err
	}
	seen := pinned{}
	for _, path := range files {
		if _, has := sums[path]; !has {
			return nil, unusable(path, "has no checksum in the lock; look at the file, then: holdfast plugin lock")
		}
	}
	for _, path := range slices.Sorted(maps.Keys(sums)) {
		sum, read, err := sumOf(path)
		if err != nil {
			return nil, err
		}
		if want := sums[path]; !strings.EqualFold(sum, strings.TrimSpace(want)) {
			return nil, unusable(path, "is not the file that was locked: its SHA-256 is %s, expected is %s; install the right one, or if it was changed on purpose: holdfast plugin lock", sum, want)
		}
		seen[path] = read
	}
	return seen, nil
}

// unchanged says whether the files are still those whose checksums were compared.
func (p pinned) unchanged() error {
	for path, before := range p {
		if after, err := sightOfPath(path); err != nil || before != after {
			return ports.Errorf(ports.Unavailable, "", "%s was changed between the look at its checksum and its start, and was stopped; replace a plugin by renaming a complete file over it", path)
		}
	}
	return nil
}
