package core

import (
	"cmp"
	"context"
	"slices"

	"holdfast/ports"
)

// Verify compares two backends by key, in both directions: it walks the first and looks each key up in the second, then walks
// the second for what the first has not. No common order is assumed. What differs is looked at again before it counts,
// because while writes go on each side is a moment behind.
//
//	walk A --> look up in B --> suspects --> look at both again --> differences
//	walk B --> look up in A --> suspects --> ...
func (h *Host) Verify(ctx context.Context, a, b string, tell func(Progress)) (Verification, error) {
	const op = "verify"
	left, err := h.side(ctx, op, a)
	if err != nil {
		return Verification{}, err
	}
	right, err := h.side(ctx, op, b)
	if err != nil {
		return Verification{}, err
	}
	if left.name == right.name {
		return Verification{}, ports.Errorf(ports.Invalid, op, "%s and %s are the same backend; name two", a, b)
	}
	families, err := common(op, left, right)
	if err != nil {
		return Verification{}, err
	}
	v := &verification{host: h, left: left, right: right, teller: newTeller(tell), most: cmp.Or(h.repairs.suspects, maxSuspects), listed: cmp.Or(h.repairs.listed, maxDifferences)}
	if err := v.turn(ctx, families); err != nil {
		return Verification{}, interrupted(ctx, op, "nothing was changed; run it again", err)
	}
	v.out.A, v.out.B = v.left.name, v.right.name
	for _, f := range families {
		if err := v.family(ctx, f); err != nil {
			return v.out, interrupted(ctx, op, "nothing was changed; run it again", err)
		}
		if err := h.learnFrom(v, f); err != nil {
			return v.out, ports.Wrap(ports.Internal, op, err)
		}
	}
	v.teller.end()
	return v.out, nil
}

// verification is one comparison.
type verification struct {
	host        *Host
	left, right *side
	teller      *teller
	most        int // suspects
	listed      int // differences
	out         Verification
	now         tally // of the family that is compared
}

// tally is what was found in one family.
type tally struct {
	onlyA, onlyB, different int64
}

// turn puts a side that can be walked first; where only one can, what only the other has is not known.
func (v *verification) turn(ctx context.Context, families []ports.Family) error {
	walks := func(s *side) (bool, error) {
		for _, f := range families {
			if ok, err := s.canWalk(ctx, f); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	}
	left, err := walks(v.left)
	if err != nil {
		return err
	}
	right, err := walks(v.right)
	switch {
	case err != nil:
		return err
	case !left && !right:
		return v.left.cannot(families[0])
	case !left:
		v.left, v.right = v.right, v.left
	}
	v.out.OneWay = !left || !right
	for _, f := range families {
		for _, s := range []*side{v.left, v.right} {
			if !s.looksUp(f) && (s == v.right || !v.out.OneWay) {
				return ports.Errorf(ports.Unimplemented, s.name, "%s cannot be read by key in the family %s, so nothing can be compared", s.name, f)
			}
		}
	}
	return nil
}

func (v *verification) family(ctx context.Context, f ports.Family) error {
	v.teller.enter(f)
	v.now = tally{}
	if err := v.forth(ctx, f); err != nil {
		return err
	}
	if v.out.OneWay {
		return nil
	}
	return v.back(ctx, f)
}

// forth walks A and looks in B for equal records.
func (v *verification) forth(ctx context.Context, f ports.Family) error {
	s := newSuspects(v, f)
	err := v.left.keys(ctx, f, v.right.lanes, func(ctx context.Context, key string, ours sheet) error {
		theirs, err := v.right.sheet(ctx, f, key)
		if err != nil {
			return err
		}
		both := int64(0)
		for id := range ours {
			if _, ok := theirs[id]; ok {
				both++
			}
		}
		v.teller.add(int64(len(ours)), 0)
		wrong, pruned := v.spare(f, ours, theirs, unequal(ours, theirs))
		return s.note(ctx, key, both, pruned, wrong)
	})
	if err != nil {
		return err
	}
	return s.settle(ctx)
}

// back walks B for what A has not. Where A cannot list what has no item, that is compared here too.
func (v *verification) back(ctx context.Context, f ports.Family) error {
	s := newSuspects(v, f)
	err := v.right.keys(ctx, f, v.left.lanes, func(ctx context.Context, key string, theirs sheet) error {
		ours, err := v.left.sheet(ctx, f, key)
		if err != nil {
			return err
		}
		wrong := missing(theirs, ours)
		both := int64(0)
		if f == ports.Queue && v.left.exporter == nil && !ours.hasItem() {
			wrong = append(wrong, unequal(ours, theirs)...)
			both = int64(len(theirs) - len(missing(theirs, ours)))
		}
		v.teller.add(int64(len(theirs)), 0)
		wrong, pruned := v.spare(f, ours, theirs, wrong)
		return s.note(ctx, key, both, pruned, wrong)
	})
	if err != nil {
		return err
	}
	return s.settle(ctx)
}

// spare takes out what only the local store has because the other side's own retention removed it, and says how many records that is.
func (v *verification) spare(f ports.Family, ours, theirs sheet, wrong []finding) (left []finding, pruned int64) {
	local, other := ours, v.right
	if v.right.local {
		local, other = theirs, v.left
	}
	w := v.host.follower(other.name, f)
	if w == nil || !(v.left.local || v.right.local) {
		return wrong, 0
	}
	if ended, until := local.ended(f), w.prunedUntil(); ended == "" || ended >= until {
		return wrong, 0
	}
	left = slices.DeleteFunc(wrong, func(x finding) bool { return x.onlyA && v.left.local || x.onlyB && v.right.local })
	return left, int64(len(wrong) - len(left))
}

// finding is a record in which two sides are not equal.
type finding struct {
	id    recordID
	onlyA bool
	onlyB bool
}

// unequal lists the records of a side that the other has not, or not so.
func unequal(ours, theirs sheet) (list []finding) {
	for id, row := range ours {
		other, ok := theirs[id]
		if !ok || row.imprint != other.imprint {
			list = append(list, finding{id: id, onlyA: !ok})
		}
	}
	return list
}

// missing lists the records that only the other side has.
func missing(theirs, ours sheet) (list []finding) {
	for id := range theirs {
		if _, ok := ours[id]; !ok {
			list = append(list, finding{id: id, onlyB: true})
		}
	}
	return list
}

func (s sheet) hasItem() bool {
	_, ok := s[recordID{kind: ports.KindItem}]
	return ok
}

// learnFrom tells a follower what a comparison with the local store found out about it.
func (h *Host) learnFrom(v *verification, f ports.Family) error {
	if v.out.OneWay || v.left.local == v.right.local {
		return nil
	}
	name, only := v.right.name, v.now.onlyB
	if v.right.local {
		name, only = v.left.name, v.now.onlyA
	}
	equal := v.now == tally{}
	if equal {
		left, err := h.state.Unsettled(name, f, "", 1)
		if err != nil {
			return err
		}
		equal = len(left) == 0
	}
	return h.verified(name, f, equal, only)
}
