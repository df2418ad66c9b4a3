package conformance

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"holdfast/ports"
)

// Failure is told by code: by it the host knows whether the same call may succeed later, and whether another backend can help.
var errorCases = []Case{
	{
		Topic: "errors", Name: "not-offered", Run: refusesPowers,
		Must: "a call of a power that is not declared fails with unimplemented and no other code",
	},
	{
		Topic: "errors", Name: "permanent", Run: refusesForGood,
		Must: "a row whose body is not one JSON object is refused with a permanent code, the same each time, or stored",
	},
	{
		Topic: "errors", Name: "secrecy", Run: keepsSecrets,
		Must: "the text of an error holds nothing of a record's body",
	},
	{
		Topic: "errors", Name: "survived", Reads: true, Run: survivesRefusals,
		Must: "a call that was refused disturbs no later one",
	},
}

// calls makes one call of each power that changes nothing.
var calls = map[string]func(c *C, b ports.Backend) error{
	"ItemReader": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.ItemReader](b).Item(c.Ctx, "nobody")
		return err
	},
	"EventReader": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.EventReader](b).Events(c.Ctx, ports.EventQuery{Key: "nobody", Limit: 1})
		return err
	},
	"AttemptReader": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.AttemptReader](b).Attempts(c.Ctx, ports.AttemptQuery{Key: "nobody", Limit: 1})
		return err
	},
	"ManifestReader": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.ManifestReader](b).Manifest(c.Ctx, "nobody")
		return err
	},
	"LocalStore": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.LocalStore](b).Stand(c.Ctx, anyHost)
		return err
	},
	"Exporter": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.Exporter](b).Export(c.Ctx, ports.ExportQuery{Family: c.family(), Limit: 1})
		return err
	},
	"Pruner": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.Pruner](b).Prune(c.Ctx, ports.PruneQuery{Limit: 1})
		return err
	},
	"Surveyor": func(c *C, b ports.Backend) error {
		_, err := asPower[ports.Surveyor](b).Survey(c.Ctx)
		return err
	},
}

// asPower reaches a method whether it is declared or not. The recorder has them all.
func asPower[T any](b ports.Backend) T {
	p, _ := b.(T)
	return p
}

func refusesPowers(c *C) {
	b := c.Backend()
	for _, name := range powers {
		call, known := calls[name]
		if !known {
			continue
		}
		err := call(c, b)
		switch code := ports.CodeOf(err); {
		case c.offers(name) && code == ports.Unimplemented:
			c.Errorf("%s is declared and answered with %s", name, faultText(err))
		case !c.offers(name) && err != nil && code != ports.Unimplemented && code != ports.NotFound:
			c.Errorf("%s is not declared and answered with %s; want unimplemented", name, faultText(err))
		}
	}
}

// hopeless gives rows that can never be stored.
func (c *C) hopeless() map[string]ports.Row {
	kind := c.puttable()[0]
	rows := map[string]ports.Row{}
	for name, body := range map[string]string{"no JSON": `{"Status":"` + secret, "no object": `["` + secret + `"]`, "two values": `{} {"` + secret + `":1}`} {
		r := c.said(kind, "hopeless "+name, 1, "")
		r.Body = []byte(body)
		rows[name] = r
	}
	return rows
}

const secret = "s3cr3t-of-a-caller"

func refusesForGood(c *C) {
	for name, r := range c.hopeless() {
		var first error
		for i := range 2 {
			applied, err := c.Backend().Put(c.Ctx, ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{r}})
			switch {
			case err == nil && applied.Done != 1:
				c.Errorf("%s: Done is %d of 1 row without an error", name, applied.Done)
			case err != nil && (!ports.CodeOf(err).Permanent() || applied.Done != 0):
				c.Errorf("%s: Done %d, %s; want Done 0 and a permanent code, such as invalid", name, applied.Done, faultText(err))
			case i > 0 && ports.CodeOf(err) != ports.CodeOf(first):
				c.Errorf("%s: first %s, then %s", name, faultText(first), faultText(err))
			}
			first = err
		}
	}
}

func keepsSecrets(c *C) {
	check := func(what string, err error) {
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				c.Errorf("%s: the error tells what was in the record: %s", what, e.Error())
				return
			}
		}
	}
	for name, r := range c.hopeless() {
		_, err := c.Backend().Put(c.Ctx, ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{r}})
		check(name, err)
	}
	r := c.said(c.puttable()[0], "w", 1, secret)
	c.putBatch(c.Backend(), ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{r}})
	stranger := ports.Position{StoreID: "another store", Epoch: "e", Seqs: map[string]uint64{anyHost: 1}}
	_, err := c.Backend().Put(c.Ctx, ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{r}, After: &stranger})
	check("a batch from elsewhere", err)
}

func survivesRefusals(c *C) {
	kinds := c.kinds()
	before := c.said(kinds[0], "before", 1, "Running")
	c.put(before)
	for _, name := range slices.Sorted(maps.Keys(c.hopeless())) {
		r := c.hopeless()[name]
		_, _ = c.Backend().Put(c.Ctx, ports.Batch{Family: r.Kind.Family(), Rows: []ports.Row{r}})
	}
	for _, f := range []ports.Family{"", "Nonsense"} { // whatever is answered
		_ = c.Backend().Probe(c.Ctx, f)
		_, _ = c.Backend().Position(c.Ctx, f)
		_, _ = c.Backend().Put(c.Ctx, ports.Batch{Family: f})
	}
	for i := range 3 {
		after := c.said(kinds[0], fmt.Sprint("after", i), 1, "Running")
		c.put(after)
		c.holds("after calls that were refused", before, after)
	}
	if err := c.Backend().Probe(c.Ctx, kinds[0].Family()); err != nil {
		c.Errorf("probe after calls that were refused: %s", faultText(err))
	}
}
