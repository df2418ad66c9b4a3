package conformance

import (
	"slices"

	"holdfast/ports"
)

// How many records there are, as far as the backend can tell.

// has says whether records of a kind can be put and read.
func (c *C) has(kind ports.Kind) bool { return slices.Contains(c.kinds(), kind) }

// offers says whether the backend declares a power.
func (c *C) offers(power string) bool { return slices.Contains(c.declared.Powers, power) }

// countsAre asks, as far as the backend can tell, whether it holds so many records of each kind and no others.
func (c *C) countsAre(want map[ports.Kind]int64) {
	if c.offers("ItemReader") && c.has(ports.KindItem) {
		rows, err := walk(c, 500, c.items(c.Backend(), ports.ItemQuery{}))
		c.countIs(ports.KindItem, want, rows, err)
	}
	if c.has(ports.KindManifest) {
		rows, err := walk(c, 500, c.manifests(c.Backend(), ports.ManifestQuery{}))
		c.countIs(ports.KindManifest, want, rows, err)
	}
	if !c.offers("Surveyor") {
		return
	}
	survey, err := power[ports.Surveyor](c).Survey(c.Ctx)
	if err != nil {
		c.Errorf("survey: %s", faultText(err))
		return
	}
	for _, kind := range c.puttable() {
		if n := survey.Counts[kind]; n != want[kind] && !survey.Partial {
			c.Errorf("the survey counts %d of kind %s, want %d", n, kind, want[kind])
		}
	}
}

func (c *C) countIs(kind ports.Kind, want map[ports.Kind]int64, rows []ports.Row, err error) {
	if err == nil && int64(len(rows)) == want[kind] {
		return
	}
	if ports.CodeOf(err) == ports.Unimplemented {
		return // the topic of lists says so
	}
	c.Errorf("the list of kind %s has %d, want %d: %q (%s)", kind, len(rows), want[kind], names(rows), faultText(err))
}
