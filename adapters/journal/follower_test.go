package journal

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	bolt "go.etcd.io/bbolt"

	"holdfast/ports"
)

func markAt(seq uint64) ports.FollowerMark {
	return ports.FollowerMark{
		Position: ports.Position{StoreID: "S", Epoch: "E", Seqs: map[string]uint64{"host": seq, "other": 1<<63 + 1}},
		FreshMs:  1767225600123, Repaired: map[string]uint64{"host": seq - 1}, Doubtful: true,
	}
}

func refused(key string) ports.Unsettled {
	return ports.Unsettled{Key: key, Kind: ports.RefusedKey, Code: ports.Invalid, Reason: "no such column", First: 3, Last: 1<<63 + 9, AtMs: 1767225600123}
}

// unsettled gives the keys that are listed, page by page.
func unsettled(t testing.TB, s *State, name string, f ports.Family, limit int) (keys []string) {
	t.Helper()
	for after := ""; ; {
		page, err := s.Unsettled(name, f, after, limit)
		ok(t, err)
		for _, u := range page {
			keys = append(keys, u.Key)
		}
		if len(page) == 0 {
			return keys
		}
		after = page[len(page)-1].Key
	}
}

// position gives a follower's Seq of "host"; 0 for one that is to be copied from zero.
func position(t testing.TB, s *State, name string, f ports.Family) uint64 {
	t.Helper()
	mark, _, err := s.Follower(name, f)
	ok(t, err)
	return mark.Position.Seqs["host"]
}

func TestWhatIsKnownOfFollowersIsThereAfterARestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	if mark, known, err := s.Follower("mirror", ports.Queue); known || err != nil || cmp.Diff(ports.FollowerMark{}, mark) != "" {
		t.Fatalf("%+v, %v", mark, err)
	}
	if mark, err := s.CopyMark("a", "b", ports.Queue); mark != nil || err != nil {
		t.Fatalf("%+v, %v", mark, err)
	}
	if a, err := s.Assignment(ports.Queue); a != nil || err != nil {
		t.Fatalf("%+v, %v", a, err)
	}
	copied := ports.CopyMark{After: &ports.Cursor{Sort: "s", Key: "k", Kind: ports.KindEvent, Num: 7}, Copied: 1 << 40, Begun: markAt(9).Position}
	beacon := ports.Assignment{BeaconID: "bcn-1", IDBeaconConnection: 3, AssignedAt: "2026-01-01T00:00:00Z"}
	keys := []ports.Unsettled{refused("b"), {Key: "a", Kind: ports.InDoubt}, refused("a\xff\x00"), refused(strings.Repeat("\U0001F600", 512))}
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(4711)))
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(4712)))
	ok(t, s.SetFollower("mirror", ports.Manifest, ports.FollowerMark{}))
	ok(t, s.SetUnsettled("mirror", ports.Queue, keys))
	ok(t, s.SetUnsettled("mirro", ports.Queue, []ports.Unsettled{refused("ra")}))
	ok(t, s.SetCopyMark("a", "b", ports.Queue, &copied))
	ok(t, s.SetCopyMark("a", "c", ports.Queue, &ports.CopyMark{}))
	ok(t, s.SetCopyMark("a", "c", ports.Queue, nil))
	ok(t, s.SetAssignment(ports.Queue, &beacon))
	ok(t, s.SetAssignment(ports.Manifest, &beacon))
	ok(t, s.SetAssignment(ports.Manifest, nil))
	for range 2 {
		ok(t, s.Close())
		s = state(t, dir)
		if mark, known, err := s.Follower("mirror", ports.Queue); !known || err != nil || cmp.Diff(markAt(4712), mark) != "" {
			t.Error(cmp.Diff(markAt(4712), mark), known, err)
		}
		if mark, known, err := s.Follower("mirror", ports.Manifest); !known || err != nil || cmp.Diff(ports.FollowerMark{}, mark) != "" {
			t.Error(mark, known, err)
		}
		if _, known, err := s.Follower("mirro", ports.Queue); known || err != nil {
			t.Error("a follower is known that never had a position", err)
		}
		want := []ports.Unsettled{keys[1], keys[2], keys[0], keys[3]}
		if got := must(s.Unsettled("mirror", ports.Queue, "", 10)); cmp.Diff(want, got) != "" {
			t.Error(cmp.Diff(want, got))
		}
		if got := unsettled(t, s, "mirror", ports.Queue, 1); len(got) != 4 {
			t.Errorf("page by page: %q", got)
		}
		if got := unsettled(t, s, "mirro", ports.Queue, 10); !slices.Equal(got, []string{"ra"}) {
			t.Errorf("of another follower: %q", got)
		}
		if got := unsettled(t, s, "mirror", ports.Manifest, 10); len(got) != 0 {
			t.Errorf("of another family: %q", got)
		}
		if got := must(s.CopyMark("a", "b", ports.Queue)); cmp.Diff(&copied, got) != "" {
			t.Error(cmp.Diff(&copied, got))
		}
		if got := must(s.CopyMark("a", "c", ports.Queue)); got != nil {
			t.Errorf("%+v", got)
		}
		if got := must(s.Assignment(ports.Queue)); cmp.Diff(&beacon, got) != "" {
			t.Error(cmp.Diff(&beacon, got))
		}
		if got := must(s.Assignment(ports.Manifest)); got != nil {
			t.Errorf("%+v", got)
		}
		if d := s.Damaged(); len(d) > 0 {
			t.Errorf("damaged %v", d)
		}
	}
}

func TestAStateFromBeforeThereWereFollowersIsTakenAsItIs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	id := must(s.Host()).ID
	ok(t, s.db.Update(func(tx *bolt.Tx) error {
		for _, name := range allBuckets()[4:] {
			if kindOf(string(name)) != asideKind {
				ok(t, tx.DeleteBucket(name))
			}
		}
		return nil
	}))
	ok(t, s.Close())
	s = state(t, dir)
	if h := must(s.Host()); h.ID != id || len(s.Damaged()) > 0 {
		t.Errorf("%+v, damaged %q", h, s.Damaged())
	}
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(7)))
	ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused("k")}))
}

func TestUnsettledKeysAreReplacedAndDropped(t *testing.T) {
	t.Parallel()
	s := state(t, t.TempDir())
	ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused("a"), refused("b"), refused("b")}))
	again := refused("a")
	again.Kind, again.Last = ports.DiscardedKey, 7
	ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{again}))
	if got := must(s.Unsettled("mirror", ports.Queue, "", 1)); len(got) != 1 || cmp.Diff(again, got[0]) != "" {
		t.Errorf("%+v", got)
	}
	ok(t, s.DropUnsettled("mirror", ports.Queue, "a", "never", "a"))
	ok(t, s.DropUnsettled("mirror", ports.Queue))
	ok(t, s.DropUnsettled("mirror", ports.Manifest, "b"))
	if got := unsettled(t, s, "mirror", ports.Queue, 10); !slices.Equal(got, []string{"b"}) {
		t.Errorf("%q", got)
	}
	if err := s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused("c"), refused("")}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("a key without a name: %v", err)
	}
	if got := unsettled(t, s, "mirror", ports.Queue, 10); !slices.Equal(got, []string{"b"}) {
		t.Errorf("not all or none: %q", got)
	}
}

func TestAReasonIsCutAtTwoKibibytesBetweenCharacters(t *testing.T) {
	t.Parallel()
	s := state(t, t.TempDir())
	for name, c := range map[string]struct {
		said string
		want int
	}{
		"short":        {"no", 2},
		"long":         {strings.Repeat("x", 5000), 2048},
		"in a letter":  {"x" + strings.Repeat("\u00e9", 5000), 2047},
		"no text":      {"\xff\xfe", 3},
		"at the limit": {strings.Repeat("x", 2048), 2048},
	} {
		u := refused(name)
		u.Reason = c.said
		ok(t, s.SetUnsettled(name, ports.Queue, []ports.Unsettled{u}))
		got := must(s.Unsettled(name, ports.Queue, "", 1))[0].Reason
		if len(got) != c.want || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, %q", name, len(got), got[:min(len(got), 10)])
		}
	}
}

func TestAHundredThousandUnsettledKeysAndNoMore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	s.db.NoSync = true
	var all []ports.Unsettled
	for i := range ports.MaxUnsettled {
		all = append(all, refused(fmt.Sprintf("item-%06d", i)))
	}
	for batch := range slices.Chunk(all, 5000) {
		ok(t, s.SetUnsettled("mirror", ports.Queue, batch))
	}
	full := func(keys ...ports.Unsettled) {
		t.Helper()
		err := s.SetUnsettled("mirror", ports.Queue, keys)
		if e := ports.AsError(err); ports.CodeOf(err) != ports.Full || e.Limit != ports.MaxUnsettled || e.Size != ports.MaxUnsettled+1 {
			t.Errorf("one too many: %v", err)
		}
	}
	for range 2 {
		full(refused("more"))
		known := refused("item-000007")
		known.Last = 4711
		full(known, refused("more"))
		if got := must(s.Unsettled("mirror", ports.Queue, "item-000006", 1)); got[0].Last == 4711 {
			t.Error("not all or none")
		}
		ok(t, s.SetUnsettled("mirror", ports.Queue, all[:100])) // known ones never count
		ok(t, s.SetUnsettled("mirror", ports.Manifest, all[:1]))
		ok(t, s.SetUnsettled("other", ports.Queue, all[:1]))
		if got := unsettled(t, s, "mirror", ports.Queue, 1000); len(got) != ports.MaxUnsettled {
			t.Errorf("%d are listed", len(got))
		}
		ok(t, s.Close())
		s = state(t, dir) // the number is found again
	}
	ok(t, s.DropUnsettled("mirror", ports.Queue, "item-000000"))
	ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused("more")}))
	full(refused("item-000000"))
}

func TestFollowersMayBeChangedFromManyPlacesAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	s.db.NoSync = true
	const each = 30
	var wg sync.WaitGroup
	for w := range 4 {
		name := fmt.Sprint("follower-", w)
		for _, f := range ports.Families {
			wg.Go(func() {
				for i := range uint64(each) {
					err := s.SetFollower(name, f, markAt(i+1))
					if err == nil {
						err = s.SetUnsettled(name, f, []ports.Unsettled{refused(fmt.Sprint(i)), refused(fmt.Sprint(i, "-"))})
					}
					if err == nil {
						err = s.DropUnsettled(name, f, fmt.Sprint(i, "-"))
					}
					if _, known, again := s.Follower(name, f); err != nil || again != nil || !known {
						t.Errorf("%v, %v", err, again)
						return
					}
				}
			})
		}
	}
	wg.Go(func() {
		for i := range int64(each) {
			if err := s.SetAssignment(ports.Queue, &ports.Assignment{BeaconID: "bcn", IDBeaconConnection: i}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
	ok(t, s.Close())
	s = state(t, dir)
	for w := range 4 {
		for _, f := range ports.Families {
			name := fmt.Sprint("follower-", w)
			if got := position(t, s, name, f); got != each {
				t.Errorf("%s of %s is at %d", f, name, got)
			}
			if got := unsettled(t, s, name, f, 7); len(got) != each {
				t.Errorf("%s of %s: %q", f, name, got)
			}
		}
	}
	if d := s.Damaged(); len(d) > 0 {
		t.Errorf("damaged: %v", d)
	}
}
