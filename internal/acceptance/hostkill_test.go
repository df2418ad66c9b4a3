package acceptance

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/hostile"
	"holdfast/internal/languages"
	"holdfast/plugins/templates"
)

// A host that is killed takes its plugins with it, in whatever language they are written and whatever they think of that.

// goneIn is how long a plugin may outlive its host.
const goneIn = time.Second

func TestNoPluginOutlivesAHostThatIsKilled(t *testing.T) {
	t.Parallel()
	setup := e2e.Mirrored("mirror")
	for _, lang := range []string{templates.Node, templates.Python} {
		command, script := projectOf(t, lang)
		setup.Config += fmt.Sprintf("backend %q %[1]q {\n  plugin = %q\n  args   = [%q]\n}\n", lang, command, script)
	}
	programs := plant(t, hostile.Deaf, hostile.Stopped, hostile.HostStreams, hostile.ForkInside, hostile.ForkOutside)
	names := []string{"local", "mirror", templates.Node, templates.Python}
	for fault, p := range programs {
		names = append(names, string(fault))
		setup.Config += fmt.Sprintf("backend \"sqlite\" %q {\n  path   = \"%[1]s.db\"\n  plugin = %q\n}\n", fault, p.Path)
	}
	h := e2e.StartWith(t, setup)
	runDirs := filepath.Join(filepath.Dir(h.Data()), "t")
	for round := range rounds(5) {
		if round%2 == 0 {
			e2e.Await(t, "every plugin runs", func() error { return allRun(t, h, names) })
			if all, _ := kin(runDirs); len(all) < len(names)+1 {
				t.Fatalf("%v are found, %d plugins should be among them", all, len(names))
			}
			goWrong(t, programs)
		} else { // some have not come to their handshake
			<-time.After(rand.N(time.Second))
		}
		before, _ := filepath.Glob(filepath.Join(runDirs, "*"))
		h.Kill()
		killed := time.Now()
		for {
			left, _ := kin(runDirs)
			if len(left) == 0 {
				break
			}
			if time.Since(killed) > goneIn {
				t.Fatalf("%s after the host's death there still are %v", goneIn, left)
			}
			<-time.After(5 * time.Millisecond)
		}
		for _, p := range programs {
			_ = p.End()
		}
		_, orphans := kin(runDirs)
		t.Logf("round %d: all gone after %s, and %d children of plugins left", round, time.Since(killed).Round(time.Millisecond), len(orphans))
		h.Launch(t)
		for _, orphan := range orphans {
			if _, left := kin(runDirs); slices.Contains(left, orphan) {
				t.Errorf("the child of a plugin outlives the next start: %s", orphan)
			}
		}
		for _, dir := range before {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s of the host before is still there", dir)
			}
		}
	}
}

// goWrong begins the faults, and waits until they show; one shows only at the end.
func goWrong(t *testing.T, programs map[hostile.Fault]hostile.Program) {
	t.Helper()
	for fault, p := range programs {
		seen := len(p.Seen())
		if err := p.Begin(); err != nil {
			t.Fatal(err)
		}
		e2e.Await(t, "it goes wrong", func() error {
			if fault != hostile.Deaf && len(p.Seen()) == seen {
				return fmt.Errorf("%s is well", fault)
			}
			return nil
		})
	}
}

// projectOf makes a project of a template and gives what starts it.
func projectOf(t *testing.T, lang string) (command, script string) {
	t.Helper()
	tool, name := languages.Tool{}, ""
	switch lang {
	case templates.Node:
		tool, name = languages.Node(t), "plugin.js"
	case templates.Python:
		tool, name = languages.Python(t), "plugin.py"
	}
	dir := t.TempDir()
	files, err := templates.Render(templates.Options{Name: lang, Lang: lang})
	if err == nil {
		err = templates.Write(dir, files)
	}
	if err != nil {
		t.Fatal(err)
	}
	languages.Install(t, dir)
	return tool.Command, filepath.Join(dir, name)
}

func allRun(t *testing.T, h *e2e.Host, names []string) error {
	t.Helper()
	for _, name := range names {
		b, err := h.Backend(t.Context(), name)
		if err != nil {
			return err
		}
		if b.PID == 0 {
			return fmt.Errorf("%s does not run: %s", name, b.Detail)
		}
	}
	return nil
}

// kin lists the live processes that were started with a folder for temporary files: a host and its plugins, and what hostile
// plugins have forked.
func kin(tmpdir string) (list, children []string) {
	found, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range found {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00TMPDIR="+tmpdir+"\x00")) {
			continue
		}
		proc := filepath.Dir(path)
		if stat, err := os.ReadFile(proc + "/stat"); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		line, _ := os.ReadFile(proc + "/cmdline")
		one := filepath.Base(proc) + " " + strings.ReplaceAll(strings.TrimRight(string(line), "\x00"), "\x00", " ")
		if strings.HasSuffix(one, " child") {
			children = append(children, one)
		} else {
			list = append(list, one)
		}
	}
	return list, children
}
