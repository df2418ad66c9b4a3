package core

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// lister is a mirror as a backend that lists, and exports nothing.
type lister struct{ *mirror }

func (l lister) Describe(ctx context.Context) (ports.Description, error) {
	d, err := l.mirror.Describe(ctx)
	d.Powers = []string{"ItemReader", "EventReader", "AttemptReader", "ManifestReader"}
	return d, err
}

func sideOf(t *testing.T, store ports.Backend, piece int) *side {
	t.Helper()
	d, err := store.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s := &side{name: "a", store: store, lanes: 1, piece: piece}
	s.learn(d)
	return s
}

// piece is what a walk handed over at once.
type piece struct {
	rows   []ports.Row
	resume *ports.Cursor
}

func (s *side) pieces(t *testing.T, f ports.Family, after *ports.Cursor) (list []piece) {
	t.Helper()
	err := s.walk(t.Context(), f, after, func(rows []ports.Row, resume *ports.Cursor) error {
		list = append(list, piece{rows, resume})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func places(list []piece) map[place]int {
	seen := map[place]int{}
	for _, p := range list {
		for i := range p.rows {
			seen[placeOfRow(&p.rows[i])]++
		}
	}
	return seen
}

func TestAWalkSeesEveryRecordOnceKeyByKey(t *testing.T) {
	t.Parallel()
	for _, exports := range []bool{true, false} {
		for _, size := range []int{1, 2, 3, 7, 512} {
			t.Run(fmt.Sprintf("exports=%t/pieces of %d", exports, size), func(t *testing.T) {
				t.Parallel()
				m := newMirror("a")
				m.has(history(9)...)
				var store ports.Backend = m
				want := 9*4 + 1 // the event without an item too
				if !exports {
					store, want = lister{m}, 9*4
				}
				s := sideOf(t, store, size)
				for f, want := range map[ports.Family]int{ports.Queue: want, ports.Manifest: 9} {
					list := s.pieces(t, f, nil)
					seen := places(list)
					if len(seen) != want {
						t.Errorf("%s: %d records, want %d", f, len(seen), want)
					}
					for at, times := range seen {
						if times != 1 {
							t.Errorf("%+v was told %d times", at, times)
						}
					}
					keyByKey(t, list, size)
				}
			})
		}
	}
}

func keyByKey(t *testing.T, list []piece, size int) {
	t.Helper()
	ended, now := map[string]bool{}, ""
	for _, p := range list {
		if len(p.rows) > size {
			t.Errorf("a piece of %d records", len(p.rows))
		}
		for _, row := range p.rows {
			if row.Key == now {
				if row.Kind == ports.KindItem {
					t.Errorf("the item %s is behind its events", row.Key)
				}
				continue
			}
			if ended[row.Key] {
				t.Errorf("the key %s comes back", row.Key)
			}
			ended[now], now = true, row.Key
		}
	}
}

func TestAWalkGoesOnWhereAnyPieceOfItEnded(t *testing.T) {
	t.Parallel()
	for _, exports := range []bool{true, false} {
		m := newMirror("a")
		m.has(history(7)...)
		var store ports.Backend = m
		if !exports {
			store = lister{m}
		}
		s := sideOf(t, store, 3)
		for _, f := range ports.Families {
			whole := s.pieces(t, f, nil)
			all := places(whole)
			for i, p := range whole {
				if p.resume == nil {
					continue
				}
				rest := places(s.pieces(t, f, p.resume))
				for at := range places(whole[:i+1]) {
					rest[at]++
				}
				if len(rest) != len(all) {
					t.Errorf("exports=%t %s: %d records with a break after piece %d, want %d", exports, f, len(rest), i, len(all))
				}
			}
		}
	}
}

func TestAWalkSeesEachRecordThatIsThereThroughoutOnceWhileOthersComeAndGo(t *testing.T) {
	t.Parallel()
	for _, exports := range []bool{true, false} {
		m := newMirror("a")
		m.has(history(40)...)
		var store ports.Backend = m
		if !exports {
			store = lister{m}
		}
		s := sideOf(t, store, 5)
		seen, n := map[string]int{}, 0
		err := s.walk(t.Context(), ports.Queue, nil, func(rows []ports.Row, _ *ports.Cursor) error {
			for _, row := range rows {
				if row.Kind == ports.KindItem && strings.HasPrefix(row.Key, "item-") {
					seen[row.Key]++
				}
			}
			n++
			m.has(itemRow(fmt.Sprintf("new-%03d", n), "", uint64(n)), itemRow(fmt.Sprintf("item-%03d", n%40), `,"Status":"Failed"`, uint64(10*(n%40)+1)))
			if n > 3 {
				m.lacks(itemRow(fmt.Sprintf("new-%03d", n-3), "", 0))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			if key := fmt.Sprintf("item-%03d", i); seen[key] != 1 {
				t.Errorf("exports=%t: %s was seen %d times", exports, key, seen[key])
			}
		}
	}
}

func TestAWalkOutlastsAStoreThatIsAwayForSeconds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, _ *stage) {
		m := newMirror("a")
		defer m.end()
		m.has(history(5)...)
		s, n := sideOf(t, m, 2), 0
		err := s.walk(t.Context(), ports.Queue, nil, func(rows []ports.Row, _ *ports.Cursor) error {
			if n == 0 {
				m.change(func(m *mirror) { m.back = 12 * time.Second })
				m.kill(nil)
			}
			n += len(rows)
			return nil
		})
		if err != nil || n != 21 {
			t.Errorf("%d records, %v", n, err)
		}
	})
}

func TestAWalkEndsWithAStoreThatStaysAwayAndWithItsContext(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, _ *stage) {
		m := newMirror("a")
		m.end()
		s := sideOf(t, m, 2)
		nothing := func([]ports.Row, *ports.Cursor) error { return nil }
		began := time.Now()
		expectCode(t, s.walk(t.Context(), ports.Queue, nil, nothing), ports.BackendGone)
		if took := time.Since(began); took < awayLimit || took > 2*awayLimit {
			t.Errorf("it took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began = time.Now()
		expectCode(t, s.walk(ctx, ports.Queue, nil, nothing), ports.Deadline)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it took %s to end with its context", took)
		}
	})
}

func TestABackendThatIsReadByKeyOnlyCannotBeWalked(t *testing.T) {
	t.Parallel()
	m := newMirror("a")
	m.keyOnly = true
	for name, store := range map[string]ports.Backend{"exporter": m, "lister": lister{m}} {
		for _, f := range ports.Families {
			err := sideOf(t, store, 3).walk(t.Context(), f, nil, func([]ports.Row, *ports.Cursor) error { return nil })
			if ports.CodeOf(err) != ports.Unimplemented || !strings.Contains(err.Error(), "read by key") {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// stuckList gives the same page for ever.
type stuckList struct{ lister }

func (stuckList) Manifests(context.Context, ports.ManifestQuery) (ports.Page, error) {
	return ports.Page{Rows: []ports.Row{manifestRow("r", "", 1)}, Next: &ports.Cursor{Key: "r"}}, nil
}

func TestAListThatDoesNotMoveOnEndsTheWalk(t *testing.T) {
	t.Parallel()
	s := sideOf(t, stuckList{lister{newMirror("a")}}, 3)
	err := s.walk(t.Context(), ports.Manifest, nil, func([]ports.Row, *ports.Cursor) error { return nil })
	expectCode(t, err, ports.Internal)
}
