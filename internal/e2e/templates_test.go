package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/languages"
	"holdfast/plugins/templates"
)

// What an author gets from `holdfast plugin new` is built outside of this repository and set to follow a host. That it keeps the
// contract is the guide's test.

// project is a rendered plugin, ready to be started.
type project struct {
	lang, dir string
	plugin    string   // the executable, as a configuration names it
	args      []string // beside it
}

func (p project) kind() string { return "tape-" + p.lang }

// begun makes a new plugin with the host's own command.
func begun(t *testing.T, host *e2e.Host, lang string) project {
	t.Helper()
	above, err := os.MkdirTemp("", "hf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(above) })
	p := project{lang: lang, dir: filepath.Join(above, "mine")}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if out, code := host.Run(t, "plugin", "new", p.kind(), p.dir, "--lang", lang, "--source", root); code != 0 {
		t.Fatalf("plugin new: %s", out)
	}
	switch lang {
	case templates.Go:
		p.plugin = filepath.Join(p.dir, "holdfast-backend-"+p.kind())
		p.inside(t, "go", "build")
	case templates.Node:
		languages.Install(t, p.dir)
		p.plugin = filepath.Join(p.dir, "plugin.js") // found by the PATH of the host
	case templates.Python:
		p.plugin, p.args = languages.Python(t).Command, []string{filepath.Join(p.dir, "plugin.py")}
	}
	return p
}

// inside runs a command in the project's folder, as its author would on a machine without a network.
func (p project) inside(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
}

func (p project) block() string {
	text := fmt.Sprintf("backend %q %q {\n  plugin = %q\n", p.kind(), p.lang, p.plugin)
	if len(p.args) > 0 {
		text += fmt.Sprintf("  args   = [%q]\n", p.args[0])
	}
	return text + "}\n"
}

// authored is a host whose environment finds the interpreters.
func authored(t *testing.T, setup e2e.Setup) *e2e.Host {
	t.Helper()
	setup.Env = append(setup.Env, "PATH="+languages.Node(t).Path())
	return e2e.StartWith(t, setup)
}

func TestProjectsOfEveryLanguageFollowAHost(t *testing.T) {
	maker := authored(t, e2e.Setup{})
	config := "route = [\"node\", \"python\", \"go\", \"local\"]\nbackend \"sqlite\" \"local\" {\n  local = true\n}\n"
	for _, lang := range templates.Langs {
		config += begun(t, maker, lang).block()
	}
	host := authored(t, e2e.Setup{Config: config})
	client := host.Client()
	defer client.Close()
	ingest(t, host)
	client.Settle(t)
	host.AwaitEqual(t)
	for _, lang := range templates.Langs {
		host.Verify(t, "local", lang)
	}
	e2e.Compare(t, client, recorded(t).model)
	// Reads by key are answered by the first backend of the route, and lists by the first that has them.
	if by := client.Answered(); by["node"] == 0 || by["go"] == 0 || by["local"] > 0 {
		t.Errorf("the reads were answered by %v", by)
	}
}
