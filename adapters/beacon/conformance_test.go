package beacon

import (
	"context"
	"slices"
	"testing"

	"holdfast/adapters/mesh/stock"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// subject has a village for each case: its beacon's store is what outlives the backend.
func subject(t *testing.T, narrow func(*ports.Description)) conformance.Subject {
	t.Helper()
	return conformance.Subject{Options: []byte(`{"timeout":"60s"}`), Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
		v := villageOf(t, c.DataDir)
		b := New(func(ports.Configuration) (ports.Mesh, error) { return v, nil })
		if err := b.Configure(ctx, c); err != nil {
			return nil, err
		}
		return &narrowed{b, narrow}, nil
	}}
}

// narrowed declares less than the backend does.
type narrowed struct {
	*Backend
	narrow func(*ports.Description)
}

func (n *narrowed) Describe(ctx context.Context) (ports.Description, error) {
	d, err := n.Backend.Describe(ctx)
	if n.narrow != nil {
		n.narrow(&d)
	}
	return d, err
}

func villageOf(t *testing.T, dir string) *village {
	t.Helper()
	villages.Lock()
	defer villages.Unlock()
	v := villages.of[dir]
	if v == nil {
		v = newVillage()
		v.join("archive", stock.NewPersistence())
		villages.of[dir] = v
	}
	return v
}

// It runs before the others and not beside them: the cases at the limits move records of 64 MiB, in bounded time.
func TestConformance(t *testing.T) {
	conformance.Run(t, subject(t, nil))
}

// What is left out for the sake of events and of queue records that cannot be removed is asked of the kinds that can do it.

func TestConformanceOfManifestsAlone(t *testing.T) {
	t.Parallel()
	conformance.Run(t, subject(t, func(d *ports.Description) {
		d.Families, d.Powers = []ports.Family{ports.Manifest}, []string{"ManifestReader", "Drainer"}
		keep(d, noRemoval)
		d.OptOuts = append(d.OptOuts, asked)
	}))
}

func TestConformanceOfItemsAlone(t *testing.T) {
	t.Parallel()
	conformance.Run(t, subject(t, func(d *ports.Description) {
		d.Families, d.Powers = []ports.Family{ports.Queue}, []string{"ItemReader", "Drainer"}
		keep(d, noRemoval, "put/removed", "put/in-order", "durability/closed", "durability/killed", "durability/drained")
		d.OptOuts = append(d.OptOuts, asked)
	}))
}

var asked = ports.OptOut{Of: "limits", Reason: "it is asked of both families together"}

// keep takes the opt-outs of a reason back, but for some.
func keep(d *ports.Description, reason string, but ...string) {
	d.OptOuts = slices.DeleteFunc(d.OptOuts, func(o ports.OptOut) bool { return o.Reason == reason && !slices.Contains(but, o.Of) })
}
