package conformance

import (
	"context"
	"strings"
	"testing"

	"holdfast/ports"
)

// says is a backend that only says what it is.
func says(d ports.Description) Subject {
	return InProcess(func() ports.Backend { return &bare{says: d, probe: func(context.Context) error { return nil }} })
}

func TestWhatABackendSaysOfItselfIsJudged(t *testing.T) {
	t.Parallel()
	good := func(change func(d *ports.Description)) ports.Description {
		d := ports.Description{
			Kind: "tape", Version: "1.0", Summary: "a tape", Families: ports.Families,
			Powers:  []string{"ItemReader", "EventReader", "AttemptReader", "ManifestReader", "LocalStore", "Drainer"},
			Options: []ports.Option{{Name: "path", Type: ports.OptionString, Help: "where"}},
			OptOuts: []ports.OptOut{{Of: "durability", Reason: "in memory"}, {Of: "put/removed", Reason: "a tape only grows"}},
		}
		change(&d)
		return d
	}
	option := func(o ports.Option) func(d *ports.Description) {
		return func(d *ports.Description) { d.Options = append(d.Options, o) }
	}
	for name, c := range map[string]struct {
		change func(d *ports.Description)
		fails  string // the case, "" for none
		with   string
	}{
		"all is well":                {func(*ports.Description) {}, "", ""},
		"no kind":                    {func(d *ports.Description) { d.Kind = "Tape 9" }, "names", "Tape 9"},
		"no version":                 {func(d *ports.Description) { d.Version = "" }, "names", "version"},
		"no family":                  {func(d *ports.Description) { d.Families = nil; d.Powers = []string{} }, "families", "no family"},
		"a family that is none":      {func(d *ports.Description) { d.Families = append(d.Families, "Logs") }, "families", "Logs"},
		"a family twice":             {func(d *ports.Description) { d.Families = []ports.Family{ports.Queue, ports.Manifest, ports.Queue} }, "families", "twice"},
		"a power that is none":       {func(d *ports.Description) { d.Powers = append(d.Powers, "ItemsReader") }, "powers", "ItemsReader"},
		"a reader without family":    {func(d *ports.Description) { d.Families = []ports.Family{ports.Queue} }, "powers", "ManifestReader"},
		"a store that does not read": {func(d *ports.Description) { d.Powers = []string{"LocalStore", "ItemReader"} }, "powers", "EventReader"},
		"an option of the host":      {option(ports.Option{Name: "local", Type: ports.OptionBool, Help: "x"}), "options", "local"},
		"an option twice":            {option(ports.Option{Name: "path", Type: ports.OptionString, Help: "x"}), "options", "twice"},
		"an option without help":     {option(ports.Option{Name: "x", Type: ports.OptionString}), "options", "no help"},
		"an option without a type":   {option(ports.Option{Name: "x", Help: "x"}), "options", "of the type"},
		"an example of another type": {option(ports.Option{Name: "x", Type: ports.OptionDuration, Help: "x", Example: "5"}), "options", "duration"},
		"a default of another type":  {option(ports.Option{Name: "x", Type: ports.OptionSize, Help: "x", Default: "5MB"}), "options", "size"},
		"a secret that is shown":     {option(ports.Option{Name: "x", Type: ports.OptionString, Help: "x", Secret: true, Default: "hunter2"}), "options", "secret"},
		"a required default":         {option(ports.Option{Name: "x", Type: ports.OptionInt, Help: "x", Required: true, Default: "5"}), "options", "required"},
		"options of every type": {func(d *ports.Description) {
			d.Options = []ports.Option{
				{Name: "a", Type: ports.OptionInt, Help: "x", Default: "5"}, {Name: "b", Type: ports.OptionBool, Help: "x", Default: "true"},
				{Name: "c", Type: ports.OptionDuration, Help: "x", Example: "250ms"}, {Name: "d", Type: ports.OptionSize, Help: "x", Default: "64MiB"},
				{Name: "e", Type: ports.OptionString, Help: "x", Required: true, Secret: true},
			}
		}, "", ""},
		"an opt-out of nothing":         {func(d *ports.Description) { d.OptOuts[0].Of = "durabilty" }, "opt-outs", "neither a topic"},
		"an opt-out without reason":     {func(d *ports.Description) { d.OptOuts[0].Reason = " " }, "opt-outs", "no reason"},
		"an opt-out of a power":         {func(d *ports.Description) { d.OptOuts[0].Of = "Pruner" }, "opt-outs", "a power"},
		"an opt-out twice":              {func(d *ports.Description) { d.OptOuts[0].Of = "put/removed" }, "opt-outs", "twice"},
		"an opt-out of being described": {func(d *ports.Description) { d.OptOuts[0].Of = "describe/opt-outs" }, "opt-outs", "nobody can opt out"},
	} {
		report, err := Check(t.Context(), says(good(c.change)), "describe", func(Result) {})
		if err != nil {
			t.Fatal(err)
		}
		found := c.fails == ""
		for _, r := range report.Results {
			told := strings.Join(r.Reason, "\n")
			switch {
			case r.Outcome == Passed:
			case r.Case.Name == c.fails && strings.Contains(told, c.with):
				found = true
			default:
				t.Errorf("%s: %s is %s: %s", name, r.Case.Path(), r.Outcome, told)
			}
		}
		if !found {
			t.Errorf("%s: describe/%s does not tell of %q", name, c.fails, c.with)
		}
	}
}
