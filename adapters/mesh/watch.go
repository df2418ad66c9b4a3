package mesh

import (
	"context"

	"holdfast/ports"
)

// Watch is ports.Mesh's.
func (h *Hub) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	for {
		h.mu.Lock()
		known, changed := h.snapshot(), h.changed
		h.mu.Unlock()
		if known.Version != since {
			return known, nil
		}
		select {
		case <-changed:
		case <-h.closing:
			return ports.Beacons{}, errStopping
		case <-ctx.Done():
			return ports.Beacons{}, ports.Wrap(ports.CodeOf(ctx.Err()), "mesh", ctx.Err())
		}
	}
}

func (h *Hub) snapshot() ports.Beacons {
	known := ports.Beacons{Version: h.registry.version, List: make([]ports.Beacon, 0, len(h.registry.all))}
	for _, b := range h.registry.all {
		known.List = append(known.List, ports.Beacon{
			Name: b.name, ID: b.id, Session: b.session, Online: b.online, Capabilities: b.capabilities,
			MaxConcurrent: h.slots(b), Tags: b.tags, RegisteredAt: b.registeredAt, SeenAt: b.seenAt,
		})
	}
	return known
}

// slots is how many works a beacon is given at a time.
func (h *Hub) slots(b *beacon) int { return max(1, min(b.maxConcurrent, h.limits.Slots)) }
