package core

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// How changes are grouped, cut and put.

// disorder says what is wrong with the rows of a group; "" for nothing.
func disorder(g group) string {
	for i, row := range g.rows {
		switch {
		case row.Key != g.key:
			return "a row of another key"
		case row.Kind == ports.KindItem && !row.Gone && i > 0:
			return "the item is not first"
		case row.Change.Seq < g.first || row.Change.Seq > g.last:
			return "the Seqs of the group are wrong"
		}
	}
	return ""
}

func TestRowsAreGroupedByKeyWithTheItemFirst(t *testing.T) {
	t.Parallel()
	rows := []ports.Row{
		eventRow("b", "b-1", "", 1), itemRow("a", "", 2), attemptRow("b", 1, "", 3), eventRow("a", "a-1", "", 4), itemRow("b", "", 5),
		eventRow("b", "b-2", "", 6), {Kind: ports.KindItem, Key: "c", Gone: true, Change: ports.Change{Host: elsewhere, Seq: 7}},
	}
	var got []string
	for _, g := range groupRows(rows) {
		if wrong := disorder(g); wrong != "" {
			t.Errorf("%s: %s", g.key, wrong)
		}
		var seqs []uint64
		for _, row := range g.rows {
			seqs = append(seqs, row.Change.Seq)
		}
		got = append(got, fmt.Sprint(g.key, seqs, g.first, "-", g.last))
	}
	if want := []string{"b[5 1 3 6] 1-6", "a[2 4] 2-4", "c[7] 7-7"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %q, want %q", got, want)
	}
}

// Whatever is cut: nothing is lost or doubled, a key's rows stay in order, and no chunk is too large.
func TestChunksHoldEverythingOnceWithinTheLimits(t *testing.T) {
	t.Parallel()
	large := []byte(strings.Repeat("x", ports.MaxBatchBytes/3))
	rapid.Check(t, func(t *rapid.T) {
		var rows []ports.Row
		for i := range rapid.SampledFrom([]int{0, 1, 5, 40, 600}).Draw(t, "rows") {
			key := fmt.Sprint("k", rapid.IntRange(0, 4).Draw(t, "key"))
			row := ports.Row{Kind: ports.KindEvent, Key: key, GUID: strconv.Itoa(i), Change: ports.Change{Seq: uint64(i + 1)}}
			if i%29 == 7 && rapid.Bool().Draw(t, "large") {
				row.Body = large
			}
			rows = append(rows, row)
		}
		suspects := map[string]bool{"k0": rapid.Bool().Draw(t, "suspect"), "k3": rapid.Bool().Draw(t, "other suspect")}
		groups := groupRows(rows)
		var want, got []string
		for _, g := range groups {
			for _, row := range g.rows {
				want = append(want, row.GUID)
			}
		}
		open := ""
		for _, c := range chunksOf(groups, func(key string) bool { return suspects[key] }) {
			bytes, n := 0, 0
			for i, g := range c.groups {
				if wrong := disorder(g); wrong != "" {
					t.Fatalf("%s: %s", g.key, wrong)
				}
				if open != "" && (i > 0 || g.key != open) {
					t.Fatalf("rows of %s were to come, and %s comes", open, g.key)
				}
				if open = ""; g.more {
					open = g.key
				}
				if g.more && i < len(c.groups)-1 {
					t.Fatalf("more of %s is to come, and %s comes", g.key, c.groups[i+1].key)
				}
				if suspects[g.key] != c.alone || c.alone && len(c.groups) != 1 {
					t.Fatalf("%s is alone: %v, among %d", g.key, c.alone, len(c.groups))
				}
				for _, row := range g.rows {
					if c.rows[n].GUID != row.GUID {
						t.Fatal("the rows of a chunk are not those of its groups")
					}
					n++
					bytes += len(row.Body) + len(row.Key) + rowOverhead
					got = append(got, row.GUID)
				}
			}
			if n != len(c.rows) || n == 0 || n > ports.MaxBatchEntries || n > 1 && bytes > ports.MaxBatchBytes {
				t.Fatalf("a chunk has %d of %d rows and %d bytes", n, len(c.rows), bytes)
			}
			skip := rapid.IntRange(0, n).Draw(t, "done")
			left := c.without(skip, c.rows[min(skip, n-1)].Key)
			for _, row := range left.rows {
				if row.Key == c.rows[min(skip, n-1)].Key {
					t.Fatal("the key is still there")
				}
			}
			if rest := c.without(skip, ""); len(rest.rows) != n-skip || n > skip && rest.rows[0].GUID != c.rows[skip].GUID {
				t.Fatalf("of %d rows behind %d are left %d", n, skip, len(rest.rows))
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%d rows are put, of %d, or not in their order", len(got), len(want))
		}
	})
}

func TestARefusalInTheMiddleOfAPutTakesOneKeyOff(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{0, 3} {
		for _, refused := range [][]string{{"k0"}, {"k3"}, {"k9"}, {"k0", "k1"}, {"k2", "k5", "k9"}} {
			playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots, m.back = slots, 0 }) }, func(t *testing.T, s *stage) {
				m := s.mirror("mirror")
				m.kill(nil) // all of it comes in one page
				for i := range 10 {
					key := fmt.Sprint("k", i)
					s.does(upsert(key, "Running"), Done)
					s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventGUID":"%s-a"}}`, key, key), Done)
				}
				m.suffers(func(b *ports.Batch) putFate {
					for _, row := range b.Rows {
						if slices.Contains(refused, row.Key) {
							return putFate{kind: putRefuses, key: row.Key, err: ports.Errorf(ports.Conflict, "mirror", "no")}
						}
					}
					return putFate{}
				})
				m.start()
				s.in(5 * time.Second)
				keys, err := s.host.UnsettledKeys("mirror", ports.Queue, "", 20)
				var got []string
				for _, k := range keys {
					got = append(got, k.Key)
					if k.Kind != ports.RefusedKey || k.Code != ports.Conflict {
						t.Errorf("%+v", k)
					}
				}
				if err != nil || !slices.Equal(got, refused) {
					t.Errorf("%d slots: unsettled are %q, want %q", slots, got, refused)
				}
				if p := m.look().positions[ports.Queue]; p.Seqs[s.host.hostID] != 20 {
					t.Errorf("%d slots: the store is at %v", slots, p.Seqs)
				}
				if f := s.follower("mirror", ports.Queue); f.Phase != string(modeReady) || f.Position != 20 || f.InDoubt != 0 {
					t.Errorf("%d slots: it is %+v", slots, f)
				}
				for _, h := range s.holes("mirror") {
					t.Error(h)
				}
				m.suffers(nil)
				if _, err := s.host.RetryUnsettled("mirror", ports.Queue, ""); err != nil {
					t.Error(err)
				}
				s.catchesUp("mirror", 5*time.Second)
				s.equal("mirror")
			})
		}
	}
}

func TestARefusalThatPassesIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []ports.Code{ports.Unavailable, ports.Full, ports.Canceled} {
		playWith(t, func(s *stage) { s.follows("mirror") }, func(t *testing.T, s *stage) {
			s.catchesUp("mirror", 5*time.Second)
			s.mirror("mirror").suffers(oneByOne("k",
				putFate{kind: putRefuses, err: ports.Errorf(code, "mirror", "not now")}, putFate{kind: putRefuses, err: ports.Errorf(code, "mirror", "not now")}))
			s.does(upsert("k", "Running"), Done)
			if !s.until(10*time.Second, func() bool { _, there := s.mirror("mirror").row(ports.KindItem, "k", "", 0); return there }) {
				t.Errorf("%s: it is not tried again: %+v", code, s.backend("mirror"))
			}
			if n := s.follower("mirror", ports.Queue).Unsettled; n != 0 {
				t.Errorf("%s: %d keys are unsettled", code, n)
			}
		})
	}
}

func TestWithThreeSlotsTwoKeysArePutAtATimeAndEachInOrder(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots = 3 }) }, func(t *testing.T, s *stage) {
		m := s.mirror("mirror")
		s.catchesUp("mirror", 5*time.Second)
		most := 0
		m.suffers(func(b *ports.Batch) putFate {
			if b.Family == ports.Queue && len(b.Rows) > 0 {
				now := 0
				for _, n := range m.busy[ports.Queue] {
					now += min(n, 1)
				}
				if len(b.Rows) < now {
					most = max(most, 2)
				}
			}
			return putFate{after: 20 * time.Millisecond}
		})
		for i := range 200 {
			s.host.Begin(upsert(fmt.Sprint("k", i%20), fmt.Sprint("Running", i)))
			if i%10 == 0 {
				s.in(7 * time.Millisecond)
			}
		}
		s.catchesUp("mirror", 30*time.Second)
		s.equal("mirror")
		m.change(func(*mirror) {
			if most < 2 {
				t.Error("no two Puts were under way at a time")
			}
		})
	})
}

func TestAHostThatEndsInTheMiddleOfPutsLosesNothing(t *testing.T) {
	t.Parallel()
	for _, slots := range []int{0, 1, 3} {
		playWith(t, func(s *stage) { s.follows("mirror", func(m *mirror) { m.slots = slots }) }, func(t *testing.T, s *stage) {
			m := s.mirror("mirror")
			s.catchesUp("mirror", 5*time.Second)
			m.suffers(every(putFate{after: 30 * time.Millisecond}))
			for i := range 60 {
				s.host.Begin(upsert(fmt.Sprint("k", i%13), fmt.Sprint("Running", i)))
				s.in(5 * time.Millisecond)
				if i%17 == 16 {
					s.again()
				}
			}
			s.in(10 * time.Second)
			m.suffers(nil)
			s.in(2 * time.Minute)
			s.catchesUp("mirror", 10*time.Second)
			s.equal("mirror")
		})
	}
}
