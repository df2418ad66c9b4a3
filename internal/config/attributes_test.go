package config_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/config"
	"holdfast/ports"
)

func TestABlockSaysWhatIsStartedAndHowMuchItMayHold(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", `
backend "sqlite" "local" {
  local = true
}
backend "beacon" "tape" {
  plugin       = "/usr/bin/node"
  args         = ["plugin.js", "a, b"]
  memory_limit = "512MiB"
}
backend "beacon" "free" {
  memory_limit = "off"
}
`, config.Input{})
	local, tape, free := cfg.Backends[0], cfg.Backends[1], cfg.Backends[2]
	if local.Args != nil || local.Memory != 2<<30 || free.Memory != config.NoMemoryLimit {
		t.Errorf("%+v, %d", local, free.Memory)
	}
	if diff := cmp.Diff([]string{"plugin.js", "a, b"}, tape.Args); diff != "" || tape.Memory != 512<<20 {
		t.Errorf("%d bytes, %s", tape.Memory, diff)
	}
	var got []string
	for _, b := range cfg.Backends {
		for _, s := range cfg.BackendSettings(b, []ports.Option{}) {
			if strings.HasSuffix(s.Name, ".args") || strings.HasSuffix(s.Name, ".memory_limit") {
				got = append(got, s.Name+" = "+s.Value+" ("+strings.TrimPrefix(s.Source, filepath.Dir(cfg.File)+"/")+")")
			}
		}
	}
	want := []string{
		"backend.local.args =  (default)", "backend.local.memory_limit = 2GiB (default)",
		"backend.tape.args = plugin.js a, b (host.hcl:7)", "backend.tape.memory_limit = 512MiB (host.hcl:8)",
		"backend.free.args =  (default)", "backend.free.memory_limit = off (host.hcl:11)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestABackendThatIsNotTheLocalStoreMayHaveARetentionOfItsOwn(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", `
backend "sqlite" "local" {
  local = true
}
backend "sqlite" "reports" {
  retention = "2160h"
}
backend "sqlite" "all" {
  retention = "off"
}
backend "sqlite" "mirror" {}
`, config.Input{})
	var got []string
	for _, b := range cfg.Backends {
		for _, s := range cfg.BackendSettings(b, []ports.Option{}) {
			if strings.HasSuffix(s.Name, ".retention") {
				got = append(got, s.Name+" = "+s.Value+" ("+strings.TrimPrefix(s.Source, filepath.Dir(cfg.File)+"/")+")")
			}
		}
		if want := map[string]time.Duration{"reports": 90 * 24 * time.Hour}[b.Name]; b.Retention != want {
			t.Errorf("%s keeps %s", b.Name, b.Retention)
		}
	}
	want := []string{"backend.reports.retention = 2160h (host.hcl:6)", "backend.all.retention = off (host.hcl:9)", "backend.mirror.retention = off (default)"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, b := range cfg.Backends {
		d := ports.Description{Kind: "sqlite", Powers: []string{"LocalStore"}}
		if refused := cfg.CheckDescription(b, d).HasErrors(); refused != (b.Name == "reports") {
			t.Errorf("%s without the power to prune is refused: %v", b.Name, refused)
		}
		d.Powers = append(d.Powers, "Pruner")
		if refused := cfg.CheckDescription(b, d); refused.HasErrors() {
			t.Errorf("%s is refused: %v", b.Name, refused)
		}
	}
}

// What is refused about the file that is started stands where the file is named, else at the block.
func TestARefusalOfTheFileOfAPluginPointsAtItsAttribute(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", "backend \"sqlite\" \"local\" {\n  local  = true\n  plugin = \"/usr/bin/node\"\n  args   = [\"p.js\"]\n}\nbackend \"beacon\" \"b\" {}\n", config.Input{})
	argument, err := filepath.Abs("p.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		backend     int
		field, line string
	}{
		{0, "plugin", "host.hcl:3:3: "}, {0, "plugin " + argument, "host.hcl:4:3: "}, {0, "args", "host.hcl:4:3: "}, {0, "memory_limit", "host.hcl:1:1: "}, {1, "plugin", "host.hcl:6:1: "},
	} {
		field, path, _ := strings.Cut(c.field, " ")
		err := cfg.Err(cfg.Refusal(cfg.Backends[c.backend], ports.InField(ports.Invalid, field, "%s is not right", path)))
		if !strings.Contains(err.Error(), c.line) {
			t.Errorf("%q is not in:\n%v", c.line, err)
		}
	}
}

func TestAPluginCannotDeclareOptionsThatNobodyCanGive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		names []string
		wrong string
	}{
		{[]string{"path", "max-size", "_x1"}, ""},
		{[]string{"local"}, "an attribute of the host's own"},
		{[]string{"a b"}, "no name in a configuration"},
		{[]string{""}, "no name in a configuration"},
		{[]string{"a", "b", "a"}, `the option "a" twice`},
	} {
		var table []ports.Option
		for _, name := range c.names {
			table = append(table, ports.Option{Name: name, Type: ports.OptionString})
		}
		if err := config.CheckTable(table); (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%q: %v", c.names, err)
		}
	}
}
