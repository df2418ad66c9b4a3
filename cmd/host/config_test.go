package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	store "holdfast/adapters/sqlite"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

var sqlite = ports.Description{
	Kind: "sqlite", Version: "1.2.3", Powers: []string{"LocalStore"},
	Options: []ports.Option{
		{Name: "path", Type: ports.OptionString, Default: "history.db"},
		{Name: "key", Type: ports.OptionString, Secret: true},
	},
}

func configFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "host.hcl")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigCheckAsksThePlugin(t *testing.T) {
	t.Parallel()
	const block = "backend \"sqlite\" \"local\" {\n  local = true\n"
	for _, c := range []struct {
		name, text string
		describe   describeFunc
		code       int
		says       []string
	}{
		{"all is well", block + "path = \"x.db\"\n}\n", described(sqlite, nil), exitcode.OK, []string{"ok: ", "backend local", "sqlite 1.2.3"}},
		{"an option is misspelt", block + "paht = \"x.db\"\n}\n", described(sqlite, nil), exitcode.Usage, []string{"host.hcl:3:1", `Did you mean "path"?`}},
		{"a second backend is a mirror", block + "}\nbackend \"sqlite\" \"mirror\" {\n  path = \"other.db\"\n}\n", described(sqlite, nil), exitcode.OK, []string{"backend local", "backend mirror"}},
		{"two backends are in one place", block + "}\nbackend \"sqlite\" \"mirror\" {}\n", described(sqlite, nil), exitcode.Usage, []string{"host.hcl:4:1", `The backend "local" at line 1`, `Give "mirror" another path`}},
		{"the plugin cannot be the local store", block + "}\n", described(ports.Description{Kind: "sqlite"}, nil), exitcode.Usage, []string{"host.hcl:1:1", "cannot be the local store"}},
		{"the plugin is of another kind", block + "}\n", described(ports.Description{Kind: "tape"}, nil), exitcode.Usage, []string{`of the kind "tape"`}},
		{"the plugin does not start", block + "}\n", described(ports.Description{}, ports.Errorf(ports.Unavailable, "process", "exited with code 7")), exitcode.Environment, []string{"host.hcl:1:1", "exited with code 7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := runProgram(t, c.describe, "--config", configFile(t, c.text), "config", "check")
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			for _, part := range c.says {
				if !strings.Contains(got.stdout+got.stderr, part) {
					t.Errorf("%q is not in %+v", part, got)
				}
			}
		})
	}
}

func TestConfigShowTellsValuesAndOriginsButNoSecret(t *testing.T) {
	t.Parallel()
	path := configFile(t, `
ack = "journaled"
backend "sqlite" "local" {
  local = true
  key   = "hunter2"
}
token "ops" {
  role   = "admin"
  secret = "hunter2"
}
`)
	for name, describe := range map[string]describeFunc{
		"with the plugin":    described(sqlite, nil),
		"without the plugin": described(ports.Description{}, ports.Errorf(ports.Unavailable, "process", "no such file")),
	} {
		text := runProgram(t, describe, "--config", path, "--log-level", "warn", "config", "show")
		if text.code != exitcode.OK || strings.Contains(text.stdout+text.stderr, "hunter2") {
			t.Errorf("%s: %+v", name, text)
		}
		got := runProgram(t, describe, "--config", path, "--log-level", "warn", "config", "show", "--json")
		var all shown
		if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
			t.Fatalf("%s: %v in %s", name, err, got.stdout)
		}
		for _, want := range []config.Setting{
			{Name: "ack", Value: "journaled", Source: path + ":2"},
			{Name: "log_level", Value: "warn", Source: "flag --log-level"},
			{Name: "retention", Value: "8760h", Source: "default"},
			{Name: "token.ops.secret", Value: "***", Source: path + ":7"},
			{Name: "backend.local.key", Value: "***", Source: path + ":5"},
		} {
			if !slices.Contains(all.Settings, want) {
				t.Errorf("%s: %+v is not in %s", name, want, got.stdout)
			}
		}
	}
}

func TestTheExampleTellsEveryOptionOfSQLite(t *testing.T) {
	t.Parallel()
	d, err := store.New().Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := configFile(t, config.Example)
	got := runProgram(t, described(d, nil), "--config", path, "config", "show", "--json")
	var all shown
	if err := json.Unmarshal([]byte(got.stdout), &all); err != nil {
		t.Fatalf("%v in %+v", err, got)
	}
	for _, o := range d.Options {
		i := slices.IndexFunc(all.Settings, func(s config.Setting) bool { return s.Name == "backend.local."+o.Name })
		if i < 0 || all.Settings[i].Value != o.Default || all.Settings[i].Source == "default" {
			t.Errorf("the example does not set %s to its default %s", o.Name, o.Default)
		}
	}
}
