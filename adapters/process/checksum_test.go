package process

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// script makes a plugin that a shell runs, so that it can be changed without a compiler.
func script(t testing.TB, habits ...string) Spec {
	t.Helper()
	spec := specOf(t, hclog.NewNullLogger())
	spec.Path, spec.Args = filepath.Join(spec.RunDir, "p"), nil
	install(t, spec.Path, "exec "+self(t)+" "+asPlugin+" "+strings.Join(habits, " "))
	return spec
}

// install puts a script in its place as an installer does: whole, by a rename.
func install(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// lock pins the files of a plugin; what is done to the map counts from the next launch on.
func lock(t testing.TB, spec *Spec) (sums map[string]string, changing *sync.Mutex) {
	t.Helper()
	files, err := spec.Files()
	if err != nil {
		t.Fatal(err)
	}
	sums, changing = map[string]string{}, &sync.Mutex{}
	for _, path := range files {
		if sums[path], err = Sum(path); err != nil {
			t.Fatal(err)
		}
	}
	spec.Checksums = func() (map[string]string, error) {
		changing.Lock()
		defer changing.Unlock()
		return maps.Clone(sums), nil
	}
	return sums, changing
}

func TestALockedPluginStartsAgainAndAgainUntilItsFileIsAnother(t *testing.T) {
	t.Parallel()
	spec := script(t)
	sums, changing := lock(t, &spec)
	for path, sum := range sums {
		sums[path] = strings.ToUpper(sum)
	}
	spec.Beside = []string{filepath.Join(spec.RunDir, "lock")}
	p := prepare(t, spec)
	p.timing.healthy = 0 // each death is the first
	p.timing.limit = time.Hour
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		starts := p.Status().Starts
		if err := syscall.Kill(pidOf(t, p), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		eventually(t, 5*time.Second, "the next child runs", func() bool { s := p.Status(); return s.Starts > starts && s.Running })
	}
	locked := sums[spec.Path]
	install(t, spec.Path, "exec "+self(t)+" "+asPlugin+" # tampered with")
	found, err := Sum(spec.Path)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pidOf(t, p), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("plugin: %s is not the file that was locked: its SHA-256 is %s, expected is %s; install the right one, or if it was changed on purpose: holdfast plugin lock", spec.Path, found, locked)
	eventually(t, 5*time.Second, "it is refused", func() bool { s := p.Status(); return s.State == GivenUp && strings.HasPrefix(s.Detail, want) })
	changing.Lock()
	sums[spec.Path] = found
	changing.Unlock()
	if err := os.WriteFile(spec.Beside[0], nil, 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "it runs, locked anew", func() bool { return p.Status().Running })
}

func TestTheScriptOfAnInterpreterIsLockedToo(t *testing.T) {
	t.Parallel()
	spec := script(t)
	spec.Path, spec.Args = "sh", []string{spec.Path, "-v"}
	sums, _ := lock(t, &spec)
	if len(sums) != 2 || sums[spec.Args[0]] == "" {
		t.Fatalf("locked are %v", sums)
	}
	delete(sums, spec.Args[0])
	_, err := Describe(t.Context(), spec)
	if want := "plugin: " + spec.Args[0] + " has no checksum in the lock; look at the file, then: holdfast plugin lock"; err == nil || err.Error() != want {
		t.Errorf("without the script: %v", err)
	}
	sums, _ = lock(t, &spec)
	module := filepath.Join(spec.RunDir, "module")
	sums[module] = strings.Repeat("0", 64)
	if _, err := Describe(t.Context(), spec); err == nil || err.Error() != "plugin: "+module+" does not exist, so it has no checksum" {
		t.Errorf("without an import: %v", err)
	}
	delete(sums, module)
	if _, err := Describe(t.Context(), spec); err != nil {
		t.Error(err)
	}
}

func TestAFileThatChangesBetweenTheLookAndTheStartIsNotRun(t *testing.T) {
	t.Parallel()
	spec := script(t)
	lock(t, &spec)
	files, err := spec.inspect()
	if err != nil {
		t.Fatal(err)
	}
	if err := files.unchanged(); err != nil {
		t.Errorf("nobody touched it: %v", err)
	}
	for name, touch := range map[string]func(path string) error{
		"another file": func(path string) error {
			text, err := os.ReadFile(path)
			install(t, path, string(text))
			return err
		},
		"other contents, as old and as long": func(path string) error {
			info, err := os.Stat(path)
			if err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte("#!/bin/sh\n"+strings.Repeat("#", int(info.Size())-10)), 0o755); err != nil {
				return err
			}
			return os.Chtimes(path, info.ModTime(), info.ModTime())
		},
		"none": os.Remove,
	} {
		spec := script(t)
		lock(t, &spec)
		files, err := spec.inspect()
		if err != nil {
			t.Fatal(err)
		}
		if err := touch(spec.Path); err != nil {
			t.Fatal(err)
		}
		p := newProgram(spec.Path, &spec, files, hclog.NewNullLogger())
		err = (&adapter{program: p}).Start(t.Context())
		if name != "none" {
			<-p.exited
		}
		if text := fmt.Sprint(err); name != "none" && !strings.Contains(text, "was changed between the look at its checksum and its start, and was stopped") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestWhatHasNoChecksumIsToldForWhatItIs(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	files := map[string]string{
		"":       "is a folder, which has no checksum; name the executable in it",
		"/empty": "is an empty file, which has no checksum worth to be pinned",
		"/none":  "does not exist, so it has no checksum",
		"/pipe":  "is no ordinary file, so it has no checksum",
	}
	if err := os.WriteFile(dir+"/empty", nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	for name := range maps.Keys(files) {
		if _, err := Sum(dir + name); err == nil || err.Error() != "plugin: "+dir+name+" "+files[name] || ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
