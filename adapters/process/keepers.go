//go:build unix

package process

import (
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// CheckKeepers refuses files that others could put a program of theirs in the place of: what everybody may write, the file or
// a folder above it, is never started; strict takes only what nobody but root and this user may write or own. A folder with
// the sticky bit (/tmp) keeps its files for their owners. Access lists beyond the mode are not looked at.
func CheckKeepers(files []string, strict bool) error {
	for _, path := range files {
		target := resolved(path)
		if err := checkKeeper(path, target, strict); err != nil {
			return err
		}
		for _, file := range slices.Compact([]string{path, target}) {
			for folder := filepath.Dir(file); ; folder = filepath.Dir(folder) {
				if err := checkKeeper(path, folder, strict); err != nil {
					return err
				}
				if folder == filepath.Dir(folder) {
					break
				}
			}
		}
	}
	return nil
}

// resolved follows every link.
func resolved(path string) string {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		return target
	}
	return path
}

// checkKeeper looks at one file or folder on the way to a plugin's file.
func checkKeeper(path, at string, strict bool) error {
	info, err := os.Stat(at)
	if err != nil {
		return unusable(path, "cannot be looked at: %v", err)
	}
	mode, subject := info.Mode(), "may be changed by"
	if at != path {
		subject = "could be replaced by"
	}
	kept := mode.IsDir() && mode&fs.ModeSticky != 0
	switch who := ownerOf(info); {
	case mode.Perm()&0o002 != 0 && !kept:
		return unusable(path, "%s everybody: the mode of %s is %04o; try: chmod o-w %s", subject, at, mode.Perm(), at)
	case strict && mode.Perm()&0o020 != 0 && !kept:
		return unusable(path, "%s a whole group: the mode of %s is %04o; try: chmod g-w %s", subject, at, mode.Perm(), at)
	case strict && who != 0 && who != os.Getuid():
		return unusable(path, "%s %s, who owns %s; try: chown root %s", subject, userName(who), at, at)
	}
	return nil
}

func ownerOf(info fs.FileInfo) int {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(stat.Uid)
	}
	return os.Getuid()
}

func userName(id int) string {
	if known, err := user.LookupId(strconv.Itoa(id)); err == nil {
		return known.Username
	}
	return "user " + strconv.Itoa(id)
}
