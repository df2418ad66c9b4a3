package meadowproxy

import (
	"path/filepath"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func at(seq int) ports.Position {
	return ports.Position{Epoch: "e", Seqs: map[string]uint64{"h": uint64(seq)}}
}

// stepping writes steps into a database, one behind the other.
type stepping struct {
	*theatre
	w *way
}

func (s *stepping) now() ledger {
	s.t.Helper()
	l, err := s.w.ledger(s.t.Context(), ports.ClassProbe)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *stepping) seq() int { l := s.now(); return int(l.position(ports.Queue).Seqs["h"]) }

func (s *stepping) to(seq int) {
	s.t.Helper()
	l := s.now()
	if err := s.w.take(s.t.Context(), ports.ClassLive, &l, ports.Queue, l.next(ports.Queue, at(seq))); err != nil {
		s.t.Fatal(err)
	}
}

func TestAStepThatComesIntoAnOlderCopyDoesNotCountThere(t *testing.T) {
	t.Parallel()
	for copied := range 6 { // how many steps the older copy has, the first one aside
		for since := 1; since <= 4; since++ { // and how many more the database, when the copy takes its place
			h := newTheatre(t, stock.Options{Dir: t.TempDir(), Name: "db"})
			s := &stepping{h, h.mustFit(h.at).way}
			for seq := range copied + 1 {
				s.to(seq)
			}
			older := filepath.Join(t.TempDir(), "older.sqlite")
			if err := h.db.Copy(1, older); err != nil {
				t.Fatal(err)
			}
			for seq := range since {
				s.to(copied + seq + 1)
			}
			l := s.now()
			if is := s.seq(); is != copied+since {
				t.Errorf("%d and %d: the database is at %d", copied, since, is)
			}
			if err := h.db.Replace(1, older); err != nil {
				t.Fatal(err)
			}
			err := s.w.take(t.Context(), ports.ClassLive, &l, ports.Queue, l.next(ports.Queue, at(100))) // it was meant for the other one
			switch is := s.seq(); {
			case is > copied:
				t.Errorf("%d and %d: the older copy says that it is at %d (%v)", copied, since, is, err)
			case copied >= mostSteps && is < copied-2:
				t.Errorf("%d and %d: the older copy has forgotten how far it is: %d", copied, since, is)
			}
			for seq := 50; seq < 50+2*mostSteps; seq++ { // the first one may be the first of all
				s.to(seq)
				if is := s.seq(); is != seq && seq > 50 {
					t.Errorf("%d and %d: the older copy goes on at %d, not %d", copied, since, is, seq)
				}
			}
		}
	}
}

func TestOnlyAStepThatFollowsAnotherCounts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		steps [mostSteps]step
		want  string
		next  int
	}{
		"none":                       {[mostSteps]step{}, "", 0},
		"the first one":              {[mostSteps]step{{"a", "", at(9)}}, "a", 1},
		"two":                        {[mostSteps]step{{"a", "", at(0)}, {"b", "a", at(1)}}, "b", 2},
		"all":                        {[mostSteps]step{{"a", "-", at(1)}, {"b", "a", at(2)}, {"c", "b", at(3)}, {"d", "c", at(4)}}, "d", 0},
		"all, and once around":       {[mostSteps]step{{"e", "d", at(5)}, {"f", "e", at(6)}, {"c", "b", at(3)}, {"d", "c", at(4)}}, "f", 2},
		"one in the last's place":    {[mostSteps]step{{"a", "-", at(1)}, {"b", "a", at(2)}, {"c", "b", at(3)}, {"x", "y", at(9)}}, "c", 3},
		"one in the middle":          {[mostSteps]step{{"a", "-", at(1)}, {"b", "a", at(2)}, {"x", "y", at(9)}, {"d", "c", at(4)}}, "b", 2},
		"one behind the oldest":      {[mostSteps]step{{"a", "-", at(1)}, {"x", "y", at(9)}, {"c", "b", at(3)}, {"d", "c", at(4)}}, "d", 0},
		"one in the oldest's place":  {[mostSteps]step{{"x", "y", at(9)}, {"b", "a", at(2)}, {"c", "b", at(3)}, {"d", "c", at(4)}}, "d", 0},
		"two that part all":          {[mostSteps]step{{"a", "-", at(1)}, {"x", "y", at(9)}, {"c", "b", at(3)}, {"x", "z", at(9)}}, "", 0},
		"two ends":                   {[mostSteps]step{{"a", "-", at(1)}, {"b", "a", at(2)}, {"x", "y", at(9)}, {"z", "x", at(9)}}, "", 0},
		"a first one in their midst": {[mostSteps]step{{"x", "", at(9)}, {"b", "a", at(2)}, {"c", "b", at(3)}, {"d", "c", at(4)}}, "d", 0},
	} {
		counts, next := last(c.steps)
		if counts.Step != c.want || next != c.next {
			t.Errorf("%s: %q counts and %d is next", name, counts.Step, next)
		}
		if counts.After == "" && len(counts.Position.Seqs) > 0 {
			t.Errorf("%s: the first one says that it is at %v", name, counts.Position)
		}
	}
}
