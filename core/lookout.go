package core

import (
	"context"

	"holdfast/ports"
)

// LookOut has every follower probed at once when who is connected to the mesh changes, until ctx ends: a beacon that left is told as
// away at once, and one that came back is not waited for. Many that come and go at once are one change.
func (h *Host) LookOut(ctx context.Context, m ports.Mesh) {
	for since := uint64(0); ctx.Err() == nil; {
		known, err := m.Watch(ctx, since)
		if err != nil {
			pause(ctx, lastPause)
			continue
		}
		if since != 0 {
			for _, w := range h.follows {
				w.probeNow()
			}
		}
		since = known.Version
		pause(ctx, watchTick)
	}
}
