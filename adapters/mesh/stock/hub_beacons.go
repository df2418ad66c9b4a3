package stock

// The beacons of a hub: who registers under which id, and what becomes of their work when they go.

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// BeaconRecord is a beacon as the hub shows it.
type BeaconRecord struct {
	BeaconID         string
	Name             string
	SessionID        *string
	Capabilities     []string
	Status           string // Online, Busy, Offline
	LastHeartbeat    string
	CurrentWorkItems []string
	MaxConcurrent    int
	Tags             map[string]any
	Contexts         map[string]any
	BindAddresses    []any
	HostID           *string
	SharedMounts     []any
	RegisteredAt     string
}

func (r *BeaconRecord) clone() BeaconRecord {
	c := *r
	c.Capabilities, c.CurrentWorkItems = slices.Clone(r.Capabilities), slices.Clone(r.CurrentWorkItems)
	return c
}

// record is a beacon as the hub knows it.
type record struct {
	BeaconRecord

	imagined bool // nobody is behind it
	pushes   bool // and it takes pushed work all the same
}

// Registration is what a beacon says of itself.
type Registration struct {
	Name          string
	Capabilities  []string
	ActionSchemas []catalogEntry
	MaxConcurrent int
	Tags          map[string]any
	Contexts      map[string]any
	BindAddresses []any
	HostID        string
	SharedMounts  []any
	JoinSecret    string
}

type catalogEntry struct {
	Capability     string
	Action         string
	Description    string
	SettingsSchema json.RawMessage
	SourceBeacons  []string
}

var notInID = regexp.MustCompile(`[^a-z0-9]`)

// register finds the record of that name, or makes one.
func (h *Hub) register(r Registration, session *string) *record {
	orDefault(&r.Name, "unnamed")
	b := h.named(r.Name)
	if b == nil {
		// Two of the same name within one millisecond would share an id; the time moves on instead, the only quirk left out.
		h.lastID = max(h.lastID+1, h.now().UnixMilli())
		b = &record{BeaconRecord: BeaconRecord{
			BeaconID: fmt.Sprintf("bcn-%s-%d", notInID.ReplaceAllString(strings.ToLower(r.Name), "-"), h.lastID),
			Name:     r.Name, Capabilities: []string{}, CurrentWorkItems: []string{}, MaxConcurrent: 1, Tags: map[string]any{},
			Contexts: map[string]any{}, BindAddresses: []any{}, SharedMounts: []any{}, RegisteredAt: h.stamp(),
		}}
		h.beacons = append(h.beacons, b)
	}
	b.SessionID, b.LastHeartbeat, b.Status = session, h.stamp(), "Online"
	over(&b.Capabilities, r.Capabilities, r.Capabilities != nil)
	over(&b.MaxConcurrent, r.MaxConcurrent, r.MaxConcurrent > 0)
	over(&b.Tags, r.Tags, r.Tags != nil)
	over(&b.Contexts, r.Contexts, r.Contexts != nil)
	over(&b.BindAddresses, r.BindAddresses, r.BindAddresses != nil)
	over(&b.HostID, &r.HostID, r.HostID != "")
	over(&b.SharedMounts, r.SharedMounts, r.SharedMounts != nil)
	h.learn(b, r.ActionSchemas)
	h.note()
	h.flush(b.BeaconID)
	return b
}

func over[T any](old *T, value T, given bool) {
	if given {
		*old = value
	}
}

// learn puts the actions of a beacon into the catalog, which forgets none.
func (h *Hub) learn(b *record, actions []catalogEntry) {
	for _, a := range actions {
		i := slices.IndexFunc(h.catalog, func(e catalogEntry) bool { return e.Capability == a.Capability && e.Action == a.Action })
		if i < 0 {
			i = len(h.catalog)
			h.catalog = append(h.catalog, a)
		}
		if !slices.Contains(h.catalog[i].SourceBeacons, b.BeaconID) {
			h.catalog[i].SourceBeacons = append(h.catalog[i].SourceBeacons, b.BeaconID)
		}
	}
}

// deregister deletes a record. What was assigned to it or ran there waits again; what the scheduler had dispatched does not.
func (h *Hub) deregister(id string) bool {
	b := h.beacon(id)
	if b == nil {
		return false
	}
	for _, hash := range b.CurrentWorkItems {
		if item := h.item(hash); item != nil && (item.Status == "Assigned" || item.Status == "Running") {
			item.Status, item.AssignedBeaconID, item.ClaimedAt = "Pending", nil, nil
		}
	}
	h.beacons = slices.DeleteFunc(h.beacons, func(other *record) bool { return other == b })
	h.note()
	return true
}

// beat is a sign of life. Only here a beacon becomes Busy.
func (h *Hub) beat(id string) *record {
	b := h.beacon(id)
	if b == nil {
		return nil
	}
	b.LastHeartbeat, b.Status = h.stamp(), "Online"
	if b.full() {
		b.Status = "Busy"
	}
	h.note()
	return b
}

func (b *record) full() bool { return len(b.CurrentWorkItems) >= b.MaxConcurrent }

func (b *record) can(capability string) bool { return slices.Contains(b.Capabilities, capability) }

func (h *Hub) beacon(id string) *record {
	for _, b := range h.beacons {
		if b.BeaconID == id {
			return b
		}
	}
	return nil
}

func (h *Hub) named(name string) *record {
	for _, b := range h.beacons {
		if b.Name == name {
			return b
		}
	}
	return nil
}

// first is the beacon that a bridge takes for available: whatever its status.
func (h *Hub) first(capability string) *record {
	for _, b := range h.beacons {
		if b.can(capability) {
			return b
		}
	}
	return nil
}

// Imagine registers a beacon with nobody behind it. One that pushes takes what is pushed and never answers by itself:
// Complete and Fail speak for it. One that does not push is asked with Poll.
func (h *Hub) Imagine(r Registration, pushes bool) BeaconRecord {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.register(r, nil)
	b.imagined, b.pushes = true, pushes
	return b.clone()
}

// Forget deletes the record of a beacon as a closing socket does, and tells nobody.
func (h *Hub) Forget(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.named(name)
	return b != nil && h.deregister(b.BeaconID)
}
