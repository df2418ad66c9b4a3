package tables

import (
	"slices"

	"holdfast/ports"
)

// MaxEpochs is how many starts of a host are remembered.
const MaxEpochs = 1000

// Opened adds an epoch to a host's, oldest first; anew says that it is not the one of last time.
func Opened(list []ports.Epoch, epoch ports.Epoch) (all []ports.Epoch, anew bool) {
	if n := len(list); n > 0 && list[n-1] == epoch {
		return list, false
	}
	list = append(list, epoch)
	return list[max(0, len(list)-MaxEpochs):], true
}

// Fits says whether a batch is the next one behind a mark, or a twin of one that was committed before, or neither.
func Fits(op string, b *ports.CommitBatch, epochs []ports.Epoch, mark uint64) (twin bool, refused error) {
	if !slices.Contains(ports.Families, b.Family) || b.Through < b.After {
		return false, ports.Errorf(ports.Invalid, op, "family %q from %d to %d is not a stretch of a journal", b.Family, b.After, b.Through)
	}
	last := b.After
	for i := range b.Entries {
		if seq := b.Entries[i].Seq; seq <= last || seq > b.Through {
			return false, ports.Errorf(ports.Invalid, op, "entry %d is out of order between %d and %d", seq, b.After, b.Through)
		}
		last = b.Entries[i].Seq
		if b.Entries[i].Action.Family() != b.Family {
			return false, ports.Errorf(ports.Invalid, op, "entry %d: %q is no write of family %s", last, b.Entries[i].Action, b.Family)
		}
	}
	// The newest epoch alone may commit: a copy of the host that opened the store later has taken it over, and what the
	// earlier one numbers goes its own way.
	if n := len(epochs); n == 0 || epochs[n-1].ID != b.Epoch {
		return false, ports.Errorf(ports.Conflict, op, "epoch %q is not the one that opened the store last", b.Epoch)
	}
	if b.Through <= mark {
		return true, nil
	}
	if b.After != mark {
		return false, ports.Errorf(ports.Conflict, op, "the store is at %d, the batch begins after %d", mark, b.After)
	}
	return false, nil
}
