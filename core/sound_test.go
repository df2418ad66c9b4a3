package core

import (
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// Backends that answer reads with what cannot be an answer.

func TestAnAnswerThatIsNoneIsPassedOverAndTold(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lie  func(*ports.Row)
		told string
	}{
		"no JSON":             {func(r *ports.Row) { r.Body = []byte("{\"a\":\x00") }, "no JSON object"},
		"nothing":             {func(r *ports.Row) { r.Body = nil }, "no JSON object"},
		"JSON, but no object": {func(r *ports.Row) { r.Body = []byte(`["a"]`) }, "no JSON object"},
		"more than one":       {func(r *ports.Row) { r.Body = []byte(`{}{}`) }, "no JSON object"},
		"another kind":        {func(r *ports.Row) { r.Kind = ports.KindAttempt }, "of the kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			routed(t, func(t *testing.T, s *stage, first *mirror) {
				s.asks("k", "first", false, 0)
				first.change(func(m *mirror) { m.lie = c.lie })
				s.asks("k", "second", false, 0)
				s.lists("second", 0)
				if a := s.host.Manifest(t.Context(), "m"); a.Backend != "second" || a.Situation != Done || a.Stale {
					t.Errorf("the manifest is answered %s", a.AppendJSON(nil))
				}
				b := s.host.Status().Backends[1]
				if f := b.Followers[0]; !strings.Contains(f.LastError, c.told) || f.LastErrorAt.IsZero() {
					t.Errorf("the status tells %q at %s", f.LastError, f.LastErrorAt)
				}
				first.change(func(m *mirror) { m.lie = nil })
				s.asks("k", "first", false, 0)
			})
		})
	}
}

func TestARecordOfAnotherKeyIsNoAnswer(t *testing.T) {
	t.Parallel()
	row := ports.Row{Kind: ports.KindItem, Key: "k", Body: []byte(`{}`)}
	for key, good := range map[string]bool{"k": true, "": true, "other": false} {
		if err := sound(&row, ports.KindItem, key); (err == nil) != good {
			t.Errorf("asked for %q: %v", key, err)
		}
	}
}

func TestHoweverManyBackendsHangTheLocalStoreAnswers(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		for _, name := range []string{"first", "second", "third", "fourth"} {
			s.follows(name)
		}
		s.config.Route = []string{"first", "second", "third", "fourth", "local"}
	}, func(t *testing.T, s *stage) {
		s.does(upsert("k", "Running"), Done)
		for _, name := range s.config.Route[:4] {
			s.catchesUp(name, 5*time.Second)
			s.mirror(name).change(func(m *mirror) { m.delays = time.Minute })
		}
		s.asks("k", "local", false, othersRead)
		s.mirror("fourth").change(func(m *mirror) { m.delays = 0 })
		s.store.mu.Lock()
		s.store.back = 0
		s.store.mu.Unlock()
		s.store.kill(nil)
		s.in(time.Second)
		s.asks("k", "fourth", false, readAltogether)
	})
}
