package config_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/internal/config"
	"holdfast/ports"
)

var update = flag.Bool("update", false, "write what is printed as what is expected")

// described stands for what the plugins say of themselves.
var described = map[string]ports.Description{
	"sqlite": {Kind: "sqlite", Powers: []string{"LocalStore"}, Options: []ports.Option{
		{Name: "path", Type: ports.OptionString, Default: "history.db", Help: "the database file"},
		{Name: "readers", Type: ports.OptionInt, Default: "4"},
		{Name: "cache", Type: ports.OptionSize, Default: "64MiB"},
		{Name: "busy_timeout", Type: ports.OptionDuration, Default: "5s"},
		{Name: "mirror", Type: ports.OptionBool, Default: "false"},
		{Name: "label", Type: ports.OptionString},
	}},
	"postgres": {Kind: "postgres", Powers: []string{"LocalStore"}, Options: []ports.Option{
		{Name: "dsn", Type: ports.OptionString, Required: true, Secret: true, Help: "where the database is", Example: `env("HOLDFAST_DSN")`},
	}},
	"beacon": {Kind: "beacon"},
	"tape": {Kind: "tape", Options: []ports.Option{
		{Name: "device", Type: ports.OptionString, Required: true, Help: "the tape drive", Example: "/dev/nst0"},
	}},
	// Two whose authors made a mistake.
	"greedy":   {Kind: "greedy", Options: []ports.Option{{Name: "args", Type: ports.OptionString}}},
	"nameless": {Kind: "nameless", Options: []ports.Option{{Name: "8 tracks", Type: ports.OptionBool}}},
}

func TestEachMistakeIsExplained(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/mistakes/*.hcl")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("testdata/mistakes/*.json")
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, more...)
	if len(files) < 20 {
		t.Fatalf("only %d mistakes are there", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			printed := explain(t, file)
			golden := strings.TrimSuffix(file, filepath.Ext(file)) + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(printed), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(golden)
			if err != nil {
				t.Fatalf("no expectation (write it with -update): %v", err)
			}
			if diff := cmp.Diff(string(expected), printed); diff != "" {
				t.Errorf("the explanation changed (-expected +printed):\n%s", diff)
			}
			for _, secret := range []string{"hunter", "7702"} {
				if strings.Contains(printed, secret) {
					t.Errorf("the explanation shows the secret %s", secret)
				}
			}
		})
	}
}

// explain loads a file that has a mistake and gives what is printed.
func explain(t *testing.T, file string) string {
	t.Helper()
	cfg, diags := config.Load(config.Input{File: file, LookupEnv: environment(nil)})
	if !diags.HasErrors() {
		tables := map[*config.Backend][]ports.Option{}
		for _, b := range cfg.Backends {
			d := described[b.Kind]
			diags = append(diags, cfg.CheckDescription(b, d)...)
			_, more := cfg.CheckOptions(b, d.Options)
			diags = append(diags, more...)
			tables[b] = d.Options
		}
		diags = append(diags, cfg.CheckPlaces(tables)...)
	}
	err := cfg.Err(diags)
	if err == nil {
		t.Fatal("the file was accepted")
	}
	if code := ports.CodeOf(err); code != ports.Invalid {
		t.Errorf("the code is %s, want %s", code, ports.Invalid)
	}
	return strings.ReplaceAll(err.Error(), filepath.Dir(file)+"/", "") + "\n"
}

func environment(set map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, ok := set[name]
		return value, ok
	}
}
