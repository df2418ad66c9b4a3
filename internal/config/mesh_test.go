package config_test

import (
	"testing"

	"holdfast/internal/config"
)

func TestOtherMachinesAreLetInOnlyWhereTheHubAsksWhoTheyAre(t *testing.T) {
	t.Parallel()
	const token = "token \"ops\" {\n  role = \"admin\"\n  secret = \"x\"\n}\n"
	for _, c := range []struct {
		name, text string
		open       bool
	}{
		{"on a loopback address everybody is", "", true},
		{"elsewhere nobody is", "listen = \"0.0.0.0:1\"\n" + token, false},
		{"but who has the join secret", "listen = \"0.0.0.0:1\"\n" + token + "mesh {\n  join_secret = \"s\"\n}\n", true},
		{"or a login", "listen = \"0.0.0.0:1\"\n" + token + "mesh {\n  user \"worker\" {\n    password = \"p\"\n  }\n}\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := load(t, "holdfast.hcl", c.text, config.Input{LookupEnv: environment(nil)})
			if got := cfg.MeshOpen(); got != c.open {
				t.Errorf("open: %v", got)
			}
		})
	}
}
