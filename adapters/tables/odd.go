package tables

import (
	"encoding/json"
	"slices"
	"strconv"

	"holdfast/ports"
)

// A batch that comes again after its answer was lost must get the answers of the first time. Nearly all decisions are
// "stored", so only the others are kept: one row for each transaction that had any, in a ring. The ring is far longer than
// the few transactions that can be unanswered at once; for an entry that is older "stored" is given.
const oddSlots = 256

// Odds are the remembered decisions of one family, as the store has them.
type Odds struct {
	next   int // the slot to be written next
	newest uint64
	slots  [oddSlots][]ports.Decision
}

// Take takes in the row of a slot, given the end of its key.
func (o *Odds) Take(slot, text string) {
	at, err := strconv.Atoi(slot)
	if err != nil || at < 0 || at >= oddSlots {
		return
	}
	var list []ports.Decision
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
		return // an answer lost twice is not worth a store that does not open
	}
	o.slots[at] = list
	if last := list[len(list)-1].Seq; last >= o.newest {
		o.newest, o.next = last, (at+1)%oddSlots
	}
}

// Next is the slot that the next transaction's odd decisions are written to.
func (o *Odds) Next() int { return o.next }

// Keep adds a transaction's odd decisions, which the store has in the slot Next.
func (o *Odds) Keep(list []ports.Decision) {
	o.slots[o.next] = list
	o.next = (o.next + 1) % oddSlots
}

// Recall gives the decisions that a batch got the first time. young are those of the transaction that is under way.
func (o *Odds) Recall(b *ports.CommitBatch, young []ports.Decision) []ports.Decision {
	known := map[uint64]ports.Decision{}
	for _, list := range slices.Concat(o.slots[:], [][]ports.Decision{young}) {
		for _, d := range list {
			if d.Seq > b.After && d.Seq <= b.Through {
				known[d.Seq] = d
			}
		}
	}
	decisions := make([]ports.Decision, len(b.Entries))
	for i, e := range b.Entries {
		d, ok := known[e.Seq]
		if !ok {
			d = ports.Decision{Seq: e.Seq, Outcome: ports.Stored}
		}
		decisions[i] = d
	}
	return decisions
}

// Lasting is a decision as it can be written down: without what stays in this process, and what is only counted.
func Lasting(d ports.Decision) ports.Decision {
	d.Foreign = false
	if d.Err != nil {
		e := *d.Err
		e.Cause = nil
		d.Err = &e
	}
	return d
}
