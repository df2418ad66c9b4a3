package process

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/ports"
)

func TestAPluginThatOthersCanReplaceIsNotStarted(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		folder, file os.FileMode
		strict       bool
		text         string
	}{
		{"kept well", 0o755, 0o755, true, ""},
		{"a file for everybody", 0o755, 0o757, false, "FILE may be changed by everybody: the mode of FILE is 0757; try: chmod o-w FILE"},
		{"a folder for everybody", 0o777, 0o755, false, "FILE could be replaced by everybody: the mode of DIR is 0777; try: chmod o-w DIR"},
		{"a folder for everybody that is sticky", 0o777 | os.ModeSticky, 0o755, true, ""},
		{"a file for a group", 0o755, 0o775, false, ""},
		{"a file for a group, in production", 0o755, 0o775, true, "FILE may be changed by a whole group: the mode of FILE is 0775; try: chmod g-w FILE"},
		{"a folder for a group, in production", 0o775, 0o755, true, "FILE could be replaced by a whole group: the mode of DIR is 0775; try: chmod g-w DIR"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(shortDir(t), "d")
			file := filepath.Join(dir, "plugin")
			for _, err := range []error{os.Mkdir(dir, 0o700), os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700), os.Chmod(file, c.file), os.Chmod(dir, c.folder)} {
				if err != nil {
					t.Fatal(err)
				}
			}
			link := filepath.Join(shortDir(t), "link")
			if err := os.Symlink(file, link); err != nil {
				t.Fatal(err)
			}
			for _, path := range []string{file, link} {
				_, err := (&Spec{Path: path, Strict: c.strict}).inspect()
				got := ""
				if err != nil {
					got = strings.ReplaceAll(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "plugin: "), file, "FILE"), dir, "DIR")
				}
				want := c.text
				if path == link && want != "" {
					want = strings.Replace(strings.Replace(want, "FILE may be changed", "FILE could be replaced", 1), "FILE", link, 1)
				}
				if got != want || (err != nil && ports.CodeOf(err) != ports.Invalid) {
					t.Errorf("it says (%s):\n%s\nand not:\n%s", ports.CodeOf(err), got, want)
				}
			}
		})
	}
}

func TestAPluginOfAnotherUserIsNotStartedInProduction(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can give a file away")
	}
	dir := shortDir(t)
	file := filepath.Join(dir, "plugin")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(file, 54321, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := (&Spec{Path: file}).inspect(); err != nil {
		t.Error(err)
	}
	_, err := (&Spec{Path: file, Strict: true}).inspect()
	if want := "plugin: " + file + " may be changed by user 54321, who owns " + file + "; try: chown root " + file; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}
