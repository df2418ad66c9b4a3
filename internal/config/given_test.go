package config_test

import (
	"strings"
	"testing"

	"holdfast/internal/config"
	"holdfast/ports"
)

func TestOptionsThatWereGivenAsTextComeInTheTypesOfTheTable(t *testing.T) {
	t.Parallel()
	table := append([]ports.Option{{Name: "drive", Type: ports.OptionString, Required: true, Help: "which drive"}}, described["sqlite"].Options...)
	for _, c := range []struct {
		given map[string]string
		want  string // or a part of the error
	}{
		{map[string]string{"drive": "/dev/{case}", "readers": "8", "cache": "1KiB", "mirror": "true"}, `{"busy_timeout":"5s","cache":1024,"drive":"/dev/{case}","mirror":true,"path":"history.db","readers":8}`},
		{nil, "drive: is needed: which drive"},
		{map[string]string{"drive": "a", "readers": "many"}, `readers: it must be a whole number; here stands "many"`},
		{map[string]string{"drive": "a", "reders": "1"}, `reders: is no option of this plugin. Did you mean "readers"?`},
	} {
		got, err := config.GivenOptions(table, c.given)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != c.want {
			t.Errorf("%v: %s", c.given, got)
		}
		if err != nil && (ports.CodeOf(err) != ports.Invalid || !strings.HasPrefix(err.Error(), ports.AsError(err).Field)) {
			t.Errorf("%v: %v", c.given, err)
		}
	}
}
