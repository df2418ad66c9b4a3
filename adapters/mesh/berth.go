package mesh

import (
	"container/list"
	"slices"
	"time"

	"holdfast/ports"
)

// berth is a beacon as far as work goes: its slots and what waits for it alone.
type berth struct {
	name         string
	session      uint64
	conn         uint64 // the socket that is pushed to; 0: none
	online       bool
	awayAt       time.Time // since when it is not
	muted        bool      // its socket does not answer: nothing is pushed until it does
	capabilities []string
	said         int              // how many works it takes at a time, as it says
	slots        int              // the same, within the limits
	held         map[string]*work // handed, sent and lingering
	astray       []string         // hashes of works whose slots were given back without its word, the newest last
	lines        lines
	waiting      int
}

// lines are who waits, by class and then in the order of coming.
type lines [classes]*list.List

const classes = int(ports.ClassCatchUp) + 1

func newLines() (l lines) {
	for i := range l {
		l[i] = list.New()
	}
	return l
}

func (b *berth) free() int { return b.slots - len(b.held) }

// room says whether the beacon can have work of a class now. Catching up never takes the last one, where there are two.
func (b *berth) room(class ports.WorkClass) bool {
	if b.muted {
		return false
	}
	if class == ports.ClassCatchUp && b.slots > 1 {
		return b.free() > 1
	}
	return b.free() > 0
}

func (b *berth) offersCapability(capability string) bool {
	return slices.Contains(b.capabilities, capability)
}

func head(l lines, class ports.WorkClass) *work {
	if e := l[class].Front(); e != nil {
		return e.Value.(*work)
	}
	return nil
}
