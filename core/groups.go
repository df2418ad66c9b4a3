package core

import (
	"holdfast/ports"
)

// What is put together: the rows of a key, and the keys of a Put.

// group is what a page has of one key.
type group struct {
	key         string
	rows        []ports.Row
	first, last uint64 // Seqs of its changes
	more        bool   // rows of it are still to come in another Put
}

// groupRows gathers the rows of a page by key, in the order in which the keys first come; in a group the item comes first.
func groupRows(rows []ports.Row) []group {
	at := make(map[string]int, len(rows))
	groups := make([]group, 0, len(rows))
	for _, row := range rows {
		i, known := at[row.Key]
		if !known {
			i = len(groups)
			at[row.Key] = i
			groups = append(groups, group{key: row.Key, first: row.Change.Seq})
		}
		g := &groups[i]
		g.rows = append(g.rows, row)
		g.first, g.last = min(g.first, row.Change.Seq), max(g.last, row.Change.Seq)
		if row.Kind == ports.KindItem && !row.Gone && len(g.rows) > 1 {
			copy(g.rows[1:], g.rows[:len(g.rows)-1])
			g.rows[0] = row
		}
	}
	return groups
}

// chunk is what one Put has.
type chunk struct {
	groups []group
	rows   []ports.Row
	alone  bool // one key under suspicion
}

// rowOverhead is what a row counts against the limit of a batch beside its key and body.
const rowOverhead = 200

// chunksOf cuts groups into Puts. A key that is larger than a batch has several; one under suspicion is alone.
func chunksOf(groups []group, suspect func(key string) bool) (chunks []chunk) {
	var c chunk
	bytes := 0
	flush := func() {
		if len(c.rows) > 0 {
			chunks = append(chunks, c)
		}
		c, bytes = chunk{}, 0
	}
	for _, g := range groups {
		alone := suspect(g.key)
		if alone {
			flush()
		}
		for i, row := range g.rows {
			size := len(row.Body) + len(row.Key) + rowOverhead
			if len(c.rows) >= ports.MaxBatchEntries || len(c.rows) > 0 && bytes+size > ports.MaxBatchBytes {
				if i > 0 {
					c.groups[len(c.groups)-1].more = true
				}
				flush()
			}
			if i == 0 || len(c.groups) == 0 {
				c.groups = append(c.groups, group{key: g.key, first: g.first, last: g.last, more: g.more})
			}
			own := &c.groups[len(c.groups)-1]
			own.rows = append(own.rows, row)
			c.rows, c.alone = append(c.rows, row), alone
			bytes += size
		}
		if alone {
			flush()
		}
	}
	flush()
	return chunks
}

// without gives what is left of a chunk behind its first n rows, without a key.
func (c chunk) without(n int, key string) chunk {
	left := chunk{alone: c.alone}
	for _, g := range c.groups {
		kept := group{key: g.key, first: g.first, last: g.last, more: g.more}
		for _, row := range g.rows {
			if n > 0 {
				n--
			} else if g.key != key {
				kept.rows = append(kept.rows, row)
			}
		}
		if len(kept.rows) > 0 {
			left.groups = append(left.groups, kept)
			left.rows = append(left.rows, kept.rows...)
		}
	}
	return left
}

func groupOf(groups []group, key string) group {
	for _, g := range groups {
		if g.key == key {
			return g
		}
	}
	return group{key: key}
}
