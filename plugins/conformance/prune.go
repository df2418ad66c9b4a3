package conformance

import (
	"time"

	"holdfast/ports"
)

// pruneAll prunes until nothing more is there to prune.
func pruneAll(c *C, p ports.Pruner, before time.Time, limit int) (total ports.Pruned) {
	for range 1000 {
		got, err := p.Prune(c.Ctx, ports.PruneQuery{Before: before, Limit: limit})
		if err != nil {
			c.Fatalf("Prune: %s", faultText(err))
		}
		if n := got.Items + got.Manifests; limit > 0 && n > int64(limit) {
			c.Errorf("a Prune of at most %d records removed %d", limit, n)
		}
		total.Items += got.Items
		total.Events += got.Events
		total.Attempts += got.Attempts
		total.Manifests += got.Manifests
		if !got.More {
			return total
		}
	}
	c.Fatalf("Prune says More for ever")
	return total
}
