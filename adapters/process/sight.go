//go:build unix

package process

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sight is what tells one state of a file from the next without reading it: the file itself, and when anything of it was
// changed last (contents, mode, owner, links), which nobody can set back.
type sight struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
	changed       unix.Timespec
}

func sightOf(stat *unix.Stat_t) sight {
	//nolint:unconvert,nolintlint // the types differ between systems
	return sight{device: uint64(stat.Dev), inode: uint64(stat.Ino), size: stat.Size, modified: stat.Mtim, changed: stat.Ctim}
}

func sightOfPath(path string) (sight, error) {
	var stat unix.Stat_t
	err := unix.Stat(path, &stat)
	return sightOf(&stat), err
}

func sightOfFile(f *os.File) (sight, error) {
	var stat unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &stat)
	return sightOf(&stat), err
}

// look gives what decides whether a plugin can be started: each of its files that is there, and who may change its
// folder; and what is looked at beside them.
func (s *Spec) look() map[string]sight {
	seen := map[string]sight{}
	files, err := s.Files()
	if err != nil { // missing, or not fit to be started
		files = []string{s.Path}
	}
	for _, path := range s.Beside {
		if now, err := sightOfPath(path); err == nil {
			seen[path] = now
		}
	}
	for _, path := range files {
		if now, err := sightOfPath(path); err == nil {
			seen[path] = now
		}
		var folder unix.Stat_t
		if unix.Stat(filepath.Dir(path), &folder) == nil { // what else happens in it is not ours
			seen[filepath.Dir(path)] = sight{inode: uint64(folder.Mode), device: uint64(folder.Uid)}
		}
	}
	return seen
}

// changed says whether there is something new to try. A file that only went away is nothing new.
func changed(before, after map[string]sight) bool {
	for path, now := range after {
		if then, was := before[path]; !was || then != now {
			return true
		}
	}
	return false
}
