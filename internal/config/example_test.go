package config_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/config"
)

func TestTheExampleIsTheDefaults(t *testing.T) {
	t.Parallel()
	in := config.Input{LookupEnv: environment(nil)}
	plain, diags := config.Load(in)
	if err := plain.Err(diags); err != nil {
		t.Fatal(err)
	}
	example := load(t, "holdfast.hcl", config.Example, in)
	if diff := cmp.Diff(values(plain), values(example)); diff != "" {
		t.Errorf("(-defaults +example):\n%s", diff)
	}
	for _, s := range plain.Settings() {
		name := s.Name[strings.LastIndexByte(s.Name, '.')+1:]
		if !regexp.MustCompile(`(?m)^\s*#?` + name + `\s+=`).MatchString(config.Example) {
			t.Errorf("the example does not tell of %s", s.Name)
		}
	}
}

func TestTheExampleLoadsWithEverythingTurnedOn(t *testing.T) {
	t.Parallel()
	turnedOn := regexp.MustCompile(`(?m)^(\s*)#( {2}|[^\s#])`).ReplaceAllString(config.Example, "$1$2")
	// The usage lines at the top begin with # and more than one space, too.
	turnedOn = regexp.MustCompile(`(?m)^ +holdfast (serve|config) .*\n`).ReplaceAllString(turnedOn, "")
	cfg := load(t, "holdfast.hcl", turnedOn, config.Input{LookupEnv: environment(map[string]string{
		"HOLDFAST_TOKEN": "hunter2", "HOLDFAST_JOIN_SECRET": "hunter3", "HOLDFAST_WORKER_PASSWORD": "hunter4",
		"ULTRAVISOR_JOIN_SECRET": "hunter5", "ULTRAVISOR_PASSWORD": "hunter6",
	})})
	if len(cfg.Tokens) != 1 || cfg.Tokens[0].Secret.Reveal() != "hunter2" {
		t.Errorf("the tokens are %v", cfg.Tokens)
	}
	if m := cfg.Mesh; m.Name != "holdfast" || m.JoinSecret.Reveal() != "hunter3" || len(m.Users) != 1 || m.Users[0].Name != "worker" || m.Users[0].Password.Reveal() != "hunter4" {
		t.Errorf("the mesh is %+v", m)
	}
	if m := cfg.Mesh; m.Join != "https://ultravisor:54321" || m.JoinCA != "/etc/holdfast/hub-ca.crt" || cfg.TLS.Cert != "/etc/holdfast/tls.crt" || cfg.TLS.Key != "/etc/holdfast/tls.key" || m.As != "holdfast-1" || m.JoinUser != "holdfast" || m.JoinPassword.Reveal() != "hunter6" || m.JoinWith.Reveal() != "hunter5" {
		t.Errorf("what is joined is %+v", m)
	}
	if cfg.PluginDir != "/usr/lib/holdfast/plugins" || cfg.LocalBackend().Plugin != "/opt/sqlite/holdfast-backend-sqlite" {
		t.Errorf("plugins in %s, the local one at %s", cfg.PluginDir, cfg.LocalBackend().Plugin)
	}
}

func values(c *config.Config) map[string]string {
	all := map[string]string{}
	for _, s := range c.Settings() {
		all[s.Name] = s.Value
	}
	for _, b := range c.Backends {
		for _, s := range c.BackendSettings(b, described[b.Kind].Options) {
			all[s.Name] = s.Value
		}
	}
	return all
}
