package core

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// What the model test would not see, it could not promise. Each of these breaks one thing on purpose and expects to be found
// out.
func TestTheModelFindsWhatIsBrokenOnPurpose(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken func(s *stage)
		plans  func(t *rapid.T) feedPlan
		finds  string // part of what is found
	}{
		"a router that goes by the position in place of fresh": {
			func(s *stage) {
				s.host.routeBy = func(w *follower) ports.Position { return w.mark.Position }
			}, genHurried, "had to be read",
		},
		"a local store that takes positions of other histories for its own": {
			func(s *stage) { s.store.flawed(func(f *flaws) { f.blindEpochs = true }) }, genRestored, "",
		},
		"a local store whose pages end inside a Seq": {
			func(s *stage) { s.store.flawed(func(f *flaws) { f.breakSeq = true }) }, genPlan, "lacks",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plans := rapid.Custom(c.plans)
			const most = 2000
			for seed := range most {
				plan := plans.Example(seed)
				if found := plan.run(t, c.broken); strings.Contains(fmt.Sprint(found), c.finds) && len(found) > 0 {
					t.Logf("found by plan %d: %s", seed, found[0])
					return
				}
			}
			t.Errorf("nothing is found in %d plans", most)
		})
	}
}
