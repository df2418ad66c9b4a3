package config_test

import (
	"regexp"
	"strings"
	"testing"

	"holdfast/internal/config"
	"holdfast/ports"
)

func TestABlockToPasteLoads(t *testing.T) {
	t.Parallel()
	d := ports.Description{Kind: "tape", Powers: []string{"LocalStore"}, Options: []ports.Option{
		{Name: "drive", Type: ports.OptionString, Required: true, Help: "the drive's device\nand nothing else", Example: `"/dev/st0"`},
		{Name: "plain", Type: ports.OptionString, Required: true, Example: `C:\tape ${x}`},
		{Name: "dsn", Type: ports.OptionString, Required: true, Secret: true, Example: `env("DSN")`},
		{Name: "key", Type: ports.OptionString, Required: true, Secret: true},
		{Name: "label", Type: ports.OptionString, Required: true},
		{Name: "count", Type: ports.OptionInt, Required: true},
		{Name: "wait", Type: ports.OptionDuration, Required: true},
		{Name: "room", Type: ports.OptionSize, Default: "64MiB"},
		{Name: "fast", Type: ports.OptionBool, Default: "true", Help: "hurry"},
		{Name: "path", Type: ports.OptionString, Default: "history.db"},
	}}
	block := config.Block(&d, `/opt/"x"/tape`, []string{"a b", "${c}"})
	const want = `backend "tape" "tape" {
  plugin = "/opt/\"x\"/tape"
  args   = ["a b", "$${c}"]
  #local = true # for the one that is the host's own store

  # the drive's device
  # and nothing else
  drive = "/dev/st0"

  plain = "C:\\tape $${x}"

  dsn = env("DSN")

  key = env("NAME")

  label = ""

  count = 0

  wait = "10s"

  #room = "64MiB"

  # hurry
  #fast = true

  #path = "history.db"
}
`
	if block != want {
		t.Errorf("it is\n%s", block)
	}
	asFollower := strings.Replace(block, "  #local = true # for the one that is the host's own store\n", "", 1)
	turnedOn := regexp.MustCompile(`(?m)^  #(\w)`).ReplaceAllString(asFollower, "  $1")
	for name, text := range map[string]string{"as it is": block, "with everything turned on": turnedOn} {
		text = strings.Replace(text, "{\n", "{\n  local = true\n", 1)
		cfg := load(t, "host.hcl", text, config.Input{LookupEnv: environment(map[string]string{"DSN": "x", "NAME": "y"})})
		b := cfg.LocalBackend()
		if b.Plugin != `/opt/"x"/tape` || len(b.Args) != 2 || b.Args[1] != "${c}" {
			t.Errorf("%s: %+v", name, b)
		}
		if _, diags := cfg.CheckOptions(b, d.Options); diags.HasErrors() {
			t.Errorf("%s: %v", name, cfg.Err(diags))
		}
	}
}
