package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/config"
	"holdfast/ports"
)

// load loads a text as a file of its own, and fails on any mistake in it.
func load(t *testing.T, name, text string, in config.Input) *config.Config {
	t.Helper()
	cfg, err := tryLoad(t, name, text, in)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func tryLoad(t *testing.T, name, text string, in config.Input) (*config.Config, error) {
	t.Helper()
	in.File = filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(in.File, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if in.LookupEnv == nil {
		in.LookupEnv = environment(nil)
	}
	cfg, diags := config.Load(in)
	return cfg, cfg.Err(diags)
}

func TestWithoutAFileEverythingHasADefault(t *testing.T) {
	t.Parallel()
	cfg, diags := config.Load(config.Input{LookupEnv: environment(nil), Binary: "/opt/holdfast/bin/holdfast"})
	if err := cfg.Err(diags); err != nil {
		t.Fatal(err)
	}
	local := cfg.LocalBackend()
	options, diags := cfg.CheckOptions(local, described["sqlite"].Options)
	if err := cfg.Err(diags); err != nil {
		t.Fatal(err)
	}
	got := map[string]any{
		"file": cfg.File, "listen": cfg.Listen, "data": cfg.Data, "ack": cfg.Ack, "route": cfg.Route, "plugins": cfg.PluginDir,
		"level": cfg.LogLevel, "json": cfg.LogJSON, "journal": cfg.Journal, "retention": cfg.Retention,
		"kind": local.Kind, "name": local.Name, "plugin": local.Plugin, "options": string(options), "tokens": len(cfg.Tokens),
	}
	want := map[string]any{
		"file": "", "listen": "127.0.0.1:8420", "data": "data", "ack": "local", "route": []string{"local"}, "plugins": "/opt/holdfast/bin/plugins",
		"level": "info", "json": false, "journal": config.Journal{}, "retention": 365 * 24 * time.Hour,
		"kind": "sqlite", "name": "local", "plugin": "/opt/holdfast/bin/plugins/holdfast-backend-sqlite",
		"options": `{"busy_timeout":"5s","cache":67108864,"mirror":false,"path":"history.db","readers":4}`, "tokens": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, s := range append(cfg.Settings(), cfg.BackendSettings(local, described["sqlite"].Options)...) {
		if s.Source != "default" {
			t.Errorf("%s = %s comes from %q", s.Name, s.Value, s.Source)
		}
	}
}

func TestWithoutARouteHistoryIsReadWhereItsOtherReadersHaveIt(t *testing.T) {
	t.Parallel()
	const local, sink, proxy, mirror = "backend \"sqlite\" \"history\" {\n  local = true\n}\n", "backend \"beacon\" \"beacon\" {}\n", "backend \"meadowproxy\" \"databeacon\" {}\n", "backend \"sqlite\" \"mirror\" {}\n"
	for _, c := range []struct {
		text string
		want []string
	}{
		{local, []string{"local"}},
		{sink + local + proxy, []string{"databeacon", "beacon", "local"}},
		{local + sink, []string{"beacon", "local"}},
		{local + mirror, []string{"local"}},
		{"route = [\"local\"]\n" + local + proxy, []string{"local"}},
		{"route = [\"mirror\", \"history\"]\n" + local + proxy + mirror, []string{"mirror", "history"}},
		{"backend \"sqlite\" \"beacon\" {\n  local = true\n}\n", []string{"local"}},
	} {
		cfg := load(t, "host.hcl", c.text, config.Input{})
		if diff := cmp.Diff(c.want, cfg.Route); diff != "" {
			t.Errorf("%s(-want +got):\n%s", c.text, diff)
		}
	}
}

func TestEveryBackendButTheLocalStoreFollows(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", "backend \"beacon\" \"a\" {}\nbackend \"sqlite\" \"b\" {\n  local = true\n}\nbackend \"sqlite\" \"c\" {}\n", config.Input{})
	var names []string
	for _, b := range cfg.Followers() {
		names = append(names, b.Name)
	}
	if diff := cmp.Diff([]string{"a", "c"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestTheLaterOriginWinsAndIsNamed(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", `
ack       = "journaled"
listen    = "127.0.0.1:1"
data      = "from-file"
retention = "off"
journal {
  limit = 2097152
}
`, config.Input{
		LookupEnv: environment(map[string]string{
			"HOLDFAST_LISTEN": "127.0.0.1:2", "HOLDFAST_DATA": "from-env", "HOLDFAST_JOURNAL_RESERVE": "1MiB", "HOLDFAST_LOG_JSON": "true", "HOLDFAST_PRODUCTION": "true",
			"HOLDFAST_ACK": "", // empty is not given
		}),
		Flags: map[string]string{"data": "from-flag", "log_level": "debug", "listen": ""},
	})
	var got []string
	for _, s := range cfg.Settings() {
		if s.Name != "plugin_dir" {
			got = append(got, fmt.Sprintf("%s = %s (%s)", s.Name, s.Value, strings.TrimPrefix(s.Source, filepath.Dir(cfg.File)+"/")))
		}
	}
	want := []string{
		"listen = 127.0.0.1:2 (env HOLDFAST_LISTEN)",
		"data = from-flag (flag --data)",
		"ack = journaled (host.hcl:2)",
		"route = local (default)",
		"production = true (env HOLDFAST_PRODUCTION)",
		"log_level = debug (flag --log-level)",
		"log_json = true (env HOLDFAST_LOG_JSON)",
		"journal.limit = 2MiB (host.hcl:7)",
		"journal.reserve = 1MiB (env HOLDFAST_JOURNAL_RESERVE)",
		"tls.cert =  (default)",
		"tls.key =  (default)",
		"mesh.name = holdfast (default)",
		"mesh.join =  (default)",
		"mesh.join_ca =  (default)",
		"mesh.as =  (default)",
		"mesh.join_user =  (default)",
		"retention = off (host.hcl:5)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if cfg.Retention != 0 || cfg.Journal.Limit != 2<<20 {
		t.Errorf("retention %v, limit %d", cfg.Retention, cfg.Journal.Limit)
	}
}

func TestAMistakeOutsideTheFileNamesWhereItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   config.Input
		want []string
	}{
		{"in the environment", config.Input{LookupEnv: environment(map[string]string{"HOLDFAST_ACK": "journled"})}, []string{"HOLDFAST_ACK", `Did you mean "journaled"?`}},
		{"in a flag", config.Input{Flags: map[string]string{"log_level": "inf"}}, []string{"flag --log-level", `Did you mean "info"?`}},
		{"an open address from a flag", config.Input{Flags: map[string]string{"listen": ":8420"}}, []string{"flag --listen", "needs tokens"}},
		{"an unknown backend in the environment's route", config.Input{LookupEnv: environment(map[string]string{"HOLDFAST_ROUTE": "locl, beacon"})}, []string{"HOLDFAST_ROUTE", `Did you mean "local"?`, `"beacon"`}},
		{"a value that a flag overrides is still checked", config.Input{LookupEnv: environment(map[string]string{"HOLDFAST_ACK": "never"}), Flags: map[string]string{"ack": "local"}}, []string{"HOLDFAST_ACK"}},
		{"a file that is not there", config.Input{File: "testdata/absent.hcl"}, []string{"testdata/absent.hcl", "no such file"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.in.LookupEnv == nil {
				c.in.LookupEnv = environment(nil)
			}
			cfg, diags := config.Load(c.in)
			err := cfg.Err(diags)
			if ports.CodeOf(err) != ports.Invalid {
				t.Fatalf("got %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in:\n%v", part, err)
				}
			}
		})
	}
}

func TestTheJSONFormMeansTheSame(t *testing.T) {
	t.Parallel()
	in := config.Input{LookupEnv: environment(map[string]string{"TOKEN": "hunter2"})}
	hcl := load(t, "host.hcl", `
listen = "0.0.0.0:8420"
route  = ["archive", "local"]
journal {
  limit = "8MiB"
}
backend "sqlite" "history" {
  local   = true
  readers = 2
}
backend "beacon" "archive" {
  plugin = "/opt/archive"
}
token "ops" {
  role   = "admin"
  secret = env("TOKEN")
}
`, in)
	js := load(t, "host.json", `{
  "//": "a comment",
  "listen": "0.0.0.0:8420",
  "route": ["archive", "local"],
  "journal": {"limit": "8MiB"},
  "backend": {
    "sqlite": {"history": {"local": true, "readers": 2}},
    "beacon": {"archive": {"plugin": "/opt/archive"}}
  },
  "token": {"ops": {"role": "admin", "secret": "${env(\"TOKEN\")}"}}
}`, in)
	summary := func(c *config.Config) (all []string) {
		for _, s := range c.Settings() {
			all = append(all, s.Name+"="+s.Value)
		}
		for _, b := range c.Backends {
			for _, s := range c.BackendSettings(b, described[b.Kind].Options) {
				all = append(all, s.Name+"="+s.Value)
			}
		}
		for _, b := range c.Routed() {
			all = append(all, "routed "+b.Name)
		}
		return append(all, c.Tokens[0].Secret.Reveal())
	}
	if diff := cmp.Diff(summary(hcl), summary(js)); diff != "" {
		t.Errorf("(-hcl +json):\n%s", diff)
	}
	if got := summary(hcl); got[len(got)-2] != "routed history" || got[len(got)-1] != "hunter2" {
		t.Errorf("got %v", got)
	}
}

func TestOptionsComeInTheTypesOfTheTable(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", `
backend "sqlite" "local" {
  local     = true
  path      = "${env("DIR")}/h.db"
  readers   = env("READERS")
  cache     = 1024
  busy_timeout = "250ms"
  mirror    = env("MIRROR")
  label     = null
}
`, config.Input{LookupEnv: environment(map[string]string{"DIR": "/srv", "READERS": "8", "MIRROR": "true"})})
	options, diags := cfg.CheckOptions(cfg.LocalBackend(), described["sqlite"].Options)
	if err := cfg.Err(diags); err != nil {
		t.Fatal(err)
	}
	const want = `{"busy_timeout":"250ms","cache":1024,"mirror":true,"path":"/srv/h.db","readers":8}`
	if string(options) != want {
		t.Errorf("got  %s\nwant %s", options, want)
	}
}

func TestARefusalOfThePluginPointsAtTheOption(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", "backend \"sqlite\" \"local\" {\n  local = true\n  path  = \"/nowhere/h.db\"\n}\n", config.Input{})
	b := cfg.LocalBackend()
	for _, c := range []struct {
		err  error
		line string
	}{
		{ports.InField(ports.Invalid, "path", "its directory is not there"), "host.hcl:3:3: "},
		{ports.Errorf(ports.Unavailable, "process", "no such file"), "host.hcl:1:1: "},
	} {
		err := cfg.Err(cfg.Refusal(b, c.err))
		if !strings.Contains(err.Error(), c.line) {
			t.Errorf("%q is not in:\n%v", c.line, err)
		}
	}
}

func TestASecretNeverPrints(t *testing.T) {
	t.Parallel()
	cfg := load(t, "host.hcl", `
token "ops" {
  role   = "admin"
  secret = "hunter2"
}
backend "postgres" "local" {
  local = true
  dsn   = "postgres://ops:hunter2@db"
}
`, config.Input{})
	text, err := json.Marshal(cfg.Tokens)
	if err != nil {
		t.Fatal(err)
	}
	b := cfg.LocalBackend()
	printed := fmt.Sprintf("%v %+v %#v %s %q %s", cfg.Tokens, cfg.Tokens, cfg.Tokens, cfg.Tokens, cfg.Tokens, text) +
		fmt.Sprint(cfg.Settings(), cfg.BackendSettings(b, described["postgres"].Options), cfg.BackendSettings(b, nil))
	if strings.Contains(printed, "hunter2") {
		t.Errorf("the secret is in %s", printed)
	}
}

// Any half-written file may be loaded: whatever the parser makes of it, the secret stays hidden.
func TestNoTruncationOfAFileShowsItsSecret(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"host.hcl": `listen = "127.0.0.1:1"
# secret = "hunter2"
backend "postgres" "local" {
  local = true
  dsn   = "postgres://ops:hunter2@db"
  extra = [1, "hunter2"]
  more  = <<EOT
hunter2
EOT
}
token "ops" { secret = "hunter2" }
token "two" {
  secret = "hunter2"
  role   = "${env("X")}"
}
`,
		"host.json": `{"listen": "127.0.0.1:1", "backend": {"postgres": {"local": {"local": true,
  "dsn": "postgres://ops:hunter2@db", "extra": [1, "hunter2"]}}},
  "token": {"ops": {"secret": "hunter2", "role": "admin"}}}
`,
	} {
		for cut := range len(text) {
			for _, broken := range []string{text[:cut], text[:cut] + text[cut+1:], text[:cut] + `"` + text[cut:]} {
				_, err := tryLoad(t, name, broken, config.Input{})
				if err != nil && strings.Contains(err.Error(), "hunter") {
					t.Fatalf("broken at %d:\n%v", cut, err)
				}
			}
		}
	}
}

func TestTheHostKnowsWhoCanReachIt(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]struct {
		loopback bool
		url      string
	}{
		"127.0.0.1:8420":  {true, "http://127.0.0.1:8420"},
		"[::1]:8420":      {true, "http://[::1]:8420"},
		"localhost:0":     {true, "http://localhost:0"},
		":8420":           {false, "http://127.0.0.1:8420"},
		"0.0.0.0:8420":    {false, "http://127.0.0.1:8420"},
		"192.0.2.1:8420":  {false, "http://192.0.2.1:8420"},
		"holdfast.x:8420": {false, "http://holdfast.x:8420"},
	} {
		c := config.Config{Listen: listen}
		if c.Loopback() != want.loopback || c.URL() != want.url {
			t.Errorf("%s: loopback %v, url %s", listen, c.Loopback(), c.URL())
		}
	}
}
