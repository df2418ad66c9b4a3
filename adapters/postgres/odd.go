package postgres

import (
	"encoding/json"
	"strconv"
	"strings"

	"holdfast/ports"
)

// A batch that comes again after its answer was lost must get the answers of the first time. Nearly all decisions are
// "stored", so only the others are kept: one row for each transaction that had any, in a ring. The ring is far longer than
// the few transactions that can be unanswered at once; for an entry that is older "stored" is given.
const oddSlots = 256

// odds are the remembered decisions of one family, as the table has them.
type odds struct {
	next  int // the slot to be written next
	slots [oddSlots][]ports.Decision
}

func readOdds(t *turn, f ports.Family, host string) (*odds, error) {
	o := &odds{}
	var newest uint64
	prefix := oddsOf(f, host)
	err := t.query(t.ctx, readKeys, func(row []any) error {
		key, _ := row[0].(string)
		text, _ := row[1].(string)
		slot, err := strconv.Atoi(strings.TrimPrefix(key, prefix))
		if err != nil || slot < 0 || slot >= oddSlots {
			return nil
		}
		var list []ports.Decision
		if err := json.Unmarshal([]byte(text), &list); err != nil || len(list) == 0 {
			return nil // an answer lost twice is not worth a store that does not open
		}
		o.slots[slot] = list
		if last := list[len(list)-1].Seq; last >= newest {
			newest, o.next = last, (slot+1)%oddSlots
		}
		return nil
	}, prefix, after(prefix))
	return o, err
}

// keep adds a committed transaction's odd decisions to the ring.
func (o *odds) keep(list []ports.Decision) {
	o.slots[o.next] = list
	o.next = (o.next + 1) % oddSlots
}

// recall gives the decisions that a batch got the first time.
func (o *odds) recall(b *ports.CommitBatch) []ports.Decision {
	known := map[uint64]ports.Decision{}
	for _, list := range o.slots {
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
