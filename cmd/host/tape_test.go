package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"holdfast/internal/reference"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// The plugin of these tests: this binary under the name holdfast-backend-tape, with a store in memory. Its arguments say what
// is the matter with it.

func serveTape() {
	if has("dies") {
		_, _ = os.Stderr.WriteString("there is no drive\n")
		os.Exit(3)
	}
	var disks reference.Disks
	sdk.Serve(&tape{Store: disks.New()})
}

func has(fault string) bool { return slices.Contains(os.Args[1:], fault) }

type tape struct {
	*reference.Store
}

func (t *tape) Describe(ctx context.Context) (ports.Description, error) {
	d, err := t.Store.Describe(ctx)
	d.Kind, d.Version, d.Summary = "tape", "2.0", "history on tape"
	d.Powers = slices.DeleteFunc(d.Powers, func(power string) bool { return power == "LocalStore" && has("follows") })
	d.OptOuts = []ports.OptOut{{Of: "durability", Reason: "the tape is torn"}}
	d.Options = []ports.Option{
		{Name: "reels", Type: ports.OptionInt, Default: "4", Help: "how many reels it turns"},
		{Name: "key", Type: ports.OptionString, Secret: true, Help: "what the reels are locked with"},
	}
	if has("needs-drive") {
		d.Options = append(d.Options, ports.Option{Name: "drive", Type: ports.OptionString, Required: true, Help: "the drive's device", Example: `"/dev/st0"`})
	}
	if has("greedy") {
		d.Options = append(d.Options, ports.Option{Name: "args", Type: ports.OptionString})
	}
	return d, err
}

func (t *tape) Configure(ctx context.Context, c ports.Configuration) error {
	var given struct {
		Reels int    `json:"reels"`
		Drive string `json:"drive"`
	}
	if err := json.Unmarshal(c.Options, &given); err != nil {
		return err
	}
	if given.Drive == "broken" {
		return ports.InField(ports.Invalid, "drive", "is broken; give it another one")
	}
	c.Options = nil
	return t.Store.Configure(ctx, c)
}

// Put of a forgetful tape says that everything is in, and keeps nothing.
func (t *tape) Put(ctx context.Context, b ports.Batch) (ports.Applied, error) {
	if has("crashes") {
		os.Exit(3)
	}
	if has("forgets") {
		sdk.Logger().Warn("what was that?", "rows", len(b.Rows))
		return ports.Applied{Done: len(b.Rows)}, nil
	}
	return t.Store.Put(ctx, b)
}
