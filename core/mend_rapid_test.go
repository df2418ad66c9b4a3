package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Whatever followers had when the local store went back: what one of them had is there again, what nobody had is told as lost,
// and in the end all are equal.

// mendPlan is what happens before a local store goes back.
type mendPlan struct {
	steps []string
	trim  int // percent of the journal that is forgotten
	older int // of the steps, after how many percent the backup is made; -1: the store is empty
	again bool
}

func genMendPlan(t *rapid.T) (p mendPlan) {
	steps := []string{"item", "item", "patch", "patch", "event", "attempt", "outcome", "manifest", "manifest", "item", "wait", "wait"}
	for _, name := range []string{"first", "second"} {
		steps = append(steps, "kill "+name, "start "+name, "start "+name, "refuse "+name)
	}
	p.steps = rapid.SliceOfN(rapid.SampledFrom(steps), 5, 60).Draw(t, "steps")
	p.trim = rapid.SampledFrom([]int{0, 30, 60, 90, 100}).Draw(t, "trim")
	p.older = rapid.SampledFrom([]int{-1, -1, 0, 30, 70, 100}).Draw(t, "older")
	p.again = rapid.Bool().Draw(t, "again")
	return p
}

// step carries out one step.
func (s *stage) step(i int, what string) {
	key := fmt.Sprint("k", i*7%9)
	switch what {
	case "item":
		s.does(upsert(key, fmt.Sprint("Running", i)), Done)
	case "patch":
		s.host.Do(s.t.Context(), call(ports.UpdateWorkItem, `{"WorkItemHash":%q,"Patch":{"Status":"Running%d","LastError":"%d"}}`, key, i, i))
	case "event":
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventGUID":"e%d","EventType":"Started"}}`, key, i), Done)
	case "attempt":
		s.host.Do(s.t.Context(), call(ports.InsertAttempt, `{"Attempt":{"WorkItemHash":%q,"AttemptNumber":%d,"BeaconID":"b%d"}}`, key, i%3+1, i))
	case "outcome":
		s.host.Do(s.t.Context(), call(ports.UpdateAttemptOutcome, `{"WorkItemHash":%q,"AttemptNumber":%d,"Outcome":"Complete"}`, key, i%3+1))
	case "manifest":
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":%q,"Status":"Running%d"}}`, key, i), Done)
	case "wait":
		s.in(3 * time.Second)
	default:
		var act, name string
		if _, err := fmt.Sscan(what, &act, &name); err != nil {
			s.t.Fatal(err)
		}
		m := s.mirror(name)
		switch act {
		case "kill":
			m.change(func(m *mirror) { m.back = 0 })
			m.kill(nil)
		case "start":
			m.start()
			s.in(time.Second)
		case "refuse":
			m.suffers(onPut(key, putFate{kind: putRefuses, err: ports.Errorf(ports.Invalid, "mirror", "no")}))
		}
	}
}

func (p mendPlan) play(t *testing.T) (found []string) {
	playWith(t, func(s *stage) { s.follows("first"); s.follows("second") }, func(t *testing.T, s *stage) {
		backup := s.store.look()
		for i, what := range p.steps {
			if p.older >= 0 && i == len(p.steps)*p.older/100 {
				backup = s.store.look()
			}
			s.step(i, what)
		}
		if p.older == 100 {
			backup = s.store.look()
		}
		s.in(3 * time.Second)
		before := s.records()
		heads := map[ports.Family]uint64{}
		for f, j := range s.journals {
			heads[f] = j.Bounds().Head
		}
		if p.again {
			s.end()
		}
		s.forgets(heads[ports.Queue]*uint64(p.trim)/100, heads[ports.Manifest]*uint64(p.trim)/100)
		for _, m := range s.mirrors {
			m.suffers(nil)
			m.change(func(m *mirror) { m.back = 20 * time.Millisecond })
			m.start()
		}
		with := func(*disk) *disk { return backup }
		if p.older < 0 {
			with = wiped
		}
		s.store.kill(with)
		if p.again {
			for _, j := range s.journals {
				j.reopen(0)
			}
			s.begin()
		}
		s.in(3 * time.Second)
		s.isReady(20 * time.Second)
		now := s.records()
		for at, row := range before {
			got, there := now[at]
			told := slices.ContainsFunc(s.lost(row.Kind.Family()), func(span ports.Span) bool { return span.From <= row.Change.Seq })
			if (!there || !sameRow(&row, &got)) && !told {
				found = append(found, fmt.Sprintf("%s %s of %+v is %s, not %s, and nothing of it is told as lost", row.Kind, row.Key, row.Change, got.Body, row.Body))
			}
		}
		for at, row := range now {
			if _, known := before[at]; !known {
				found = append(found, fmt.Sprintf("%s %s of %+v never was", row.Kind, row.Key, row.Change))
			}
		}
		for _, name := range []string{"first", "second"} {
			if _, err := s.host.RetryUnsettled(name, ports.Queue, ""); err != nil {
				t.Error(err)
			}
			if _, err := s.host.RetryUnsettled(name, ports.Manifest, ""); err != nil {
				t.Error(err)
			}
		}
		s.in(70 * time.Second)
		for _, name := range []string{"first", "second"} {
			s.catchesUp(name, 70*time.Second)
			for _, d := range s.differences(name) {
				if len(s.lost(ports.Queue))+len(s.lost(ports.Manifest)) == 0 {
					found = append(found, d)
				}
			}
		}
	})
	return found
}

func TestWhateverFollowersHadNothingIsLostUntold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		plan := rapid.Custom(genMendPlan).Draw(r, "plan")
		if found := plan.play(t); len(found) > 0 {
			r.Fatalf("%+v\n%s", plan, found)
		}
	})
}
