package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// What differs while writes go on may only be on its way. Suspects are keys that differed once; they are looked at again
// until both sides had time to become fresh, and only records that differed each time count.
const (
	maxSuspects  = 10_000 // keys; at the limit they are settled at once
	suspectFor   = 2 * time.Second
	suspectPause = 100 * time.Millisecond
)

type suspects struct {
	*verification
	f     ports.Family
	lanes int

	turn chan struct{} // whoever holds it may touch keys and the outcome; settling them takes a while
	keys map[string][]finding
}

func newSuspects(v *verification, f ports.Family) *suspects {
	return &suspects{verification: v, f: f, lanes: min(v.left.lanes, v.right.lanes), turn: make(chan struct{}, 1), keys: map[string][]finding{}}
}

// note takes in what was found of a key.
func (s *suspects) note(ctx context.Context, key string, both, pruned int64, wrong []finding) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	s.out.Compared += both
	s.out.Pruned += pruned
	if len(wrong) > 0 {
		s.keys[key] = wrong
	}
	if len(s.keys) < s.most {
		return nil
	}
	return s.settleAll(ctx)
}

func (s *suspects) settle(ctx context.Context) error {
	if err := s.take(ctx); err != nil {
		return err
	}
	defer s.give()
	return s.settleAll(ctx)
}

func (s *suspects) take(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *suspects) give() { <-s.turn }

// settleAll looks at the suspects again, and counts what is left of them.
func (s *suspects) settleAll(ctx context.Context) error {
	began := time.Now()
	for pause := suspectPause; len(s.keys) > 0; pause *= 2 {
		last := time.Since(began) >= suspectFor
		if err := s.again(ctx); err != nil {
			return err
		}
		if last {
			break
		}
		select {
		case <-time.After(min(pause, max(suspectFor-time.Since(began), 0))):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := s.count(ctx); err != nil {
		return err
	}
	clear(s.keys)
	return nil
}

// again looks at every suspect once more and keeps what still differs.
func (s *suspects) again(ctx context.Context) error {
	var mu sync.Mutex
	still := map[string][]finding{}
	err := inLanes(ctx, s.lanes, func(hand func(string) error) error {
		for key := range s.keys {
			if err := hand(key); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, key string) error {
		wrong, compared, pruned, err := s.recheck(ctx, key)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.out.Compared += compared
		s.out.Pruned += pruned
		if len(wrong) > 0 {
			still[key] = wrong
		}
		return nil
	})
	if err == nil {
		s.keys = still
	}
	return err
}

// recheck gives the findings of a key that still hold, and how many records became comparable, or were pruned.
func (s *suspects) recheck(ctx context.Context, key string) (wrong []finding, compared, pruned int64, err error) {
	ours, err := s.left.sheet(ctx, s.f, key)
	if err != nil {
		return nil, 0, 0, err
	}
	theirs, err := s.right.sheet(ctx, s.f, key)
	if err != nil {
		return nil, 0, 0, err
	}
	for _, w := range s.keys[key] {
		a, inA := ours[w.id]
		b, inB := theirs[w.id]
		switch lone := w.onlyA || w.onlyB; {
		case inA && inB && a.imprint == b.imprint:
			if lone {
				compared++
			}
			continue
		case !inA && !inB:
			if !lone {
				compared--
			}
			continue
		case inA && inB && lone:
			compared++
		case inA != inB && !lone:
			compared--
		}
		w.onlyA, w.onlyB = inA && !inB, inB && !inA
		wrong = append(wrong, w)
	}
	wrong, pruned = s.spare(s.f, ours, theirs, wrong)
	return wrong, compared, pruned, nil
}

// count takes what is left into the outcome.
func (s *suspects) count(ctx context.Context) error {
	keys := make([]string, 0, len(s.keys))
	for key, list := range s.keys {
		keys = append(keys, key)
		slices.SortFunc(list, func(a, b finding) int { return a.id.compare(b.id) })
		for _, w := range list {
			switch {
			case w.onlyA:
				s.now.onlyA++
				s.out.OnlyA++
			case w.onlyB:
				s.now.onlyB++
				s.out.OnlyB++
			default:
				s.now.different++
				s.out.Different++
			}
		}
	}
	slices.SortFunc(keys, cmp.Compare[string])
	for _, key := range keys {
		if len(s.out.Differences) >= s.listed {
			return nil
		}
		if err := s.list(ctx, key, s.keys[key]); err != nil {
			return err
		}
	}
	return nil
}

// list adds the differences of a key to the outcome, with the members in which they are.
func (s *suspects) list(ctx context.Context, key string, wrong []finding) error {
	wrong = wrong[:min(len(wrong), s.listed-len(s.out.Differences))]
	at := map[recordID]int{}
	for _, w := range wrong {
		d := Difference{Family: s.f, Kind: w.id.kind, Key: key, GUID: w.id.guid, Number: w.id.number}
		switch {
		case w.onlyA:
			d.Only = s.left.name
		case w.onlyB:
			d.Only = s.right.name
		default:
			at[w.id] = len(s.out.Differences)
		}
		s.out.Differences = append(s.out.Differences, d)
	}
	if len(at) == 0 {
		return nil
	}
	ours, bytes := map[recordID]ports.Row{}, 0
	err := s.left.lookUp(ctx, s.f, key, func(row ports.Row) error {
		if _, ok := at[idOf(&row)]; ok && bytes+len(row.Body) <= ports.MaxPageBytes || len(ours) == 0 {
			ours[idOf(&row)], bytes = row, bytes+len(row.Body)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.right.lookUp(ctx, s.f, key, func(row ports.Row) error {
		i, ok := at[idOf(&row)]
		if other, here := ours[idOf(&row)]; ok && here {
			s.out.Differences[i].Members = differing(&other, &row)
		}
		return nil
	})
}
