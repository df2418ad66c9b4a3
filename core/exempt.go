package core

import (
	"bytes"
	"sync"

	"holdfast/ports"
)

// Work that persistence itself causes is never recorded, or recording it would cause more of it without end.

// exempt are the capabilities whose work holdfast and its peers are made of.
var exempt = map[string]bool{
	"QueuePersistence": true, "ManifestStore": true, "MeadowProxy": true,
	"DataBeaconSchema": true, "DataBeaconManagement": true, "Authentication": true,
}

// Exempt says whether nothing of a capability's work is ever recorded: passwords travel in some of it.
func Exempt(capability string) bool { return exempt[capability] }

// maxExemptKeys is how many keys of such work are remembered, so that its later writes are known too.
const maxExemptKeys = 100_000

// exemptions remembers the keys of ignored work, the newest of them.
type exemptions struct {
	mu       sync.Mutex
	now, old map[string]struct{} // two generations, each of half the size
}

func newExemptions() *exemptions { return &exemptions{now: map[string]struct{}{}} }

// ignores says whether a write is about exempt work.
func (x *exemptions) ignores(c *checked) bool {
	if c.entry.Action.Family() != ports.Queue {
		return false
	}
	capability, said := capabilityOf(c)
	if said && exempt[capability] {
		x.remember(c.entry.Key)
		return true
	}
	if said && c.entry.Action == ports.UpsertWorkItem {
		x.forget(c.entry.Key) // an item of ordinary work under a key that was used before
		return false
	}
	return x.knows(c.entry.Key)
}

// capabilityOf is the capability that a write names, in its record, an event's payload or a patch's settings.
func capabilityOf(c *checked) (name string, said bool) {
	if raw := c.record.Get("Capability"); raw != nil {
		return c.record.Text("Capability"), true
	}
	var inner []byte
	switch c.entry.Action {
	case ports.AppendEvent:
		inner = c.record.Get("Payload")
	case ports.UpdateWorkItem:
		inner = c.record.Get("Settings")
	}
	if len(inner) == 0 || inner[0] != '{' || !bytes.Contains(inner, []byte("apability")) {
		return "", false
	}
	_ = ports.ScanObject(inner, ports.MaxDepth, func(member, value []byte) error { // it was checked with its record
		if plain, _ := ports.Unquote(member); plain == "Capability" && value[0] == '"' {
			name, _ = ports.Unquote(value)
			said = true
		}
		return nil
	})
	return name, said
}

func (x *exemptions) remember(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.now) >= maxExemptKeys/2 {
		x.now, x.old = map[string]struct{}{}, x.now
	}
	x.now[key] = struct{}{}
}

func (x *exemptions) forget(key string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.now, key)
	delete(x.old, key)
}

func (x *exemptions) knows(key string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, now := x.now[key]
	_, old := x.old[key]
	return now || old
}
