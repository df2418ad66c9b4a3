package meadowproxy

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast/ports"
)

func TestTheSlugOfAConnection(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"UV Store \u00dcnit #1":        "uv-store-unit-1",
		"uvstore-sqlite":               "uvstore-sqlite",
		"  --  ":                       "conn-7",
		"":                             "conn-7",
		"\u6f22\u5b57":                 "conn-7",
		"\u00c9t\u00e9 \uff21\u00b2":   "ete-a2",
		strings.Repeat("long ", 20):    strings.Repeat("long-", 12) + "long",
		strings.Repeat("a", 63) + " b": strings.Repeat("a", 63) + "-",
	} {
		if got := (connection{IDBeaconConnection: 7, Name: name}).slug(); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestTheDescriptorCanBeMadeByEveryEngine(t *testing.T) {
	t.Parallel()
	for _, e := range []engine{engineSQLite, enginePostgres, engineMySQL, engineMSSQL} {
		d := describe(e, none)
		if len(d.Tables) != 5 || d.Tables[0].Scope != ownTable {
			t.Fatalf("%s: %d tables", e, len(d.Tables))
		}
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		if e == engineMySQL && strings.Contains(string(text), `"Size":"512"`) {
			t.Error("a CHAR of 512 cannot be made on MySQL")
		}
		for _, spec := range d.Tables {
			has := map[string]bool{}
			for _, c := range spec.Schema {
				has[c.Column] = true
			}
			for _, i := range spec.Indexes {
				for _, c := range i.Columns {
					if !has[c] {
						t.Errorf("%s: the index %s is over %s, which is no column", e, i.Name, c)
					}
				}
			}
			if spec.Schema[0].Column != spec.DefaultIdentifier || spec.Schema[0].Type != "AutoIdentity" {
				t.Errorf("%s: %s begins with %v", e, spec.Scope, spec.Schema[0])
			}
		}
	}
}

func TestKeysAreAsWideAsTheEngineLetsThemBe(t *testing.T) {
	t.Parallel()
	for e, want := range map[engine]string{engineSQLite: "512", enginePostgres: "512", engineMySQL: "255"} {
		for _, spec := range describe(e, none).Tables[1:] {
			for _, c := range spec.Schema {
				if (c.Column == "WorkItemHash" || c.Column == "Hash" || c.Column == "EventGUID") && c.Size != want {
					t.Errorf("%s: %s.%s has %s characters", e, spec.Scope, c.Column, c.Size)
				}
			}
		}
	}
}

func TestABareTableIsDescribedWithoutIndexes(t *testing.T) {
	t.Parallel()
	d := describe(enginePostgres, func(table string) bool { return table == ports.Items.Name })
	for _, spec := range d.Tables {
		if bare := len(spec.Indexes) == 0; bare != (spec.Scope == ports.Items.Name) {
			t.Errorf("%s has %d indexes", spec.Scope, len(spec.Indexes))
		}
	}
}

func TestOptionsThatAreNoneAreNamed(t *testing.T) {
	t.Parallel()
	for text, field := range map[string]string{
		`{"beacon":"db"}`: "beacon", `{"timeout":"soon"}`: "timeout", `{"timeout":4}`: "timeout", `{"timeout":"1ms"}`: "timeout", `{"timeout":"2h"}`: "timeout",
	} {
		if _, err := parseOptions([]byte(text)); ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != field {
			t.Errorf("%s: %v", text, err)
		}
	}
	if s, err := parseOptions([]byte(`{"timeout":"2s"}`)); err != nil || s.timeout.String() != "2s" {
		t.Errorf("%v, %v", s, err)
	}
	if s, err := parseOptions(nil); err != nil || s.timeout != usualTimeout {
		t.Errorf("%v, %v", s, err)
	}
}
