package sqlite

import "holdfast/ports"

// place names one record of the file.
type place struct {
	layout *layout
	key    string // of an event its GUID
	number int64  // of an attempt
}

// cached is a record as the file has it.
type cached struct {
	held *ports.Held
	id   int64 // rowid
}

// cache holds recently written records, so that a patch need not read what an upsert just wrote. It is bounded by bytes
// and forgets in two steps: what was not used since the younger half filled goes when it fills again.
type cache struct {
	half       int64
	young, old map[place]cached
	youngBytes int64
}

func newCache(bytes int64) *cache {
	c := &cache{half: bytes / 2}
	c.reset()
	return c
}

// reset forgets everything: what was rolled back, or changed by another program, must be read again.
func (c *cache) reset() {
	c.young, c.old, c.youngBytes = map[place]cached{}, nil, 0
}

func (c *cache) get(p place) (cached, bool) {
	if v, ok := c.young[p]; ok {
		return v, true
	}
	v, ok := c.old[p]
	if ok {
		c.put(p, v)
	}
	return v, ok
}

// put keeps a record; one that would take much of the cache is not worth it.
func (c *cache) put(p place, v cached) {
	size := heldCost(v.held)
	if size > c.half/16 {
		c.drop(p)
		return
	}
	if c.youngBytes+size > c.half {
		c.old, c.young, c.youngBytes = c.young, map[place]cached{}, 0
	}
	c.young[p] = v
	c.youngBytes += size
}

func (c *cache) drop(p place) {
	delete(c.young, p)
	delete(c.old, p)
}

// heldCost is about what a record takes in memory: its values may stand in two texts, the first and a patch.
func heldCost(h *ports.Held) int64 {
	return 2*h.Record.Size() + int64(len(h.Record.Cols))*24 + int64(len(h.Record.Extra))*40 + 400
}
