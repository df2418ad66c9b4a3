package journal

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"holdfast/ports"
)

// walked gives everything that a walk finds, and what it complains of.
func walked(t testing.TB, path string) (all map[string]map[string]string, problems []error) {
	t.Helper()
	file := must(os.Open(path))
	defer file.Close()
	p, err := openPages(file, must(file.Stat()).Size())
	ok(t, err)
	all = map[string]map[string]string{}
	w := pageWalk{
		pages:   p,
		bucket:  func(name string, _ uint64) { all[name] = map[string]string{} },
		visit:   func(bucket string, k, v []byte) { all[bucket][string(k)] = string(v) },
		problem: func(bucket string, err error) { problems = append(problems, fmt.Errorf("%s: %w", bucket, err)) },
	}
	w.run()
	return all, problems
}

func TestAFileIsReadAsBboltReadsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		path := filepath.Join(must(os.MkdirTemp(t.TempDir(), "")), "db")
		db := must(bolt.Open(path, 0o600, &bolt.Options{
			NoSync: true, NoGrowSync: true, FreelistType: bolt.FreelistMapType,
			PageSize: rapid.SampledFrom([]int{0, 1024, 65536}).Draw(r, "page size"),
		}))
		defer db.Close()
		want := map[string]map[string]string{}
		for range rapid.IntRange(0, 8).Draw(r, "transactions") {
			name := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "bucket")
			ok(t, db.Update(func(tx *bolt.Tx) error {
				if rapid.IntRange(0, 9).Draw(r, "drop") == 0 && want[name] != nil {
					delete(want, name)
					return tx.DeleteBucket([]byte(name))
				}
				b := must(tx.CreateBucketIfNotExists([]byte(name)))
				if want[name] == nil {
					want[name] = map[string]string{}
				}
				length := rapid.SampledFrom([]int{0, 20, 700, 9000, 70000}).Draw(r, "length")
				for range rapid.IntRange(0, 300).Draw(r, "entries") {
					key := fmt.Sprint("key-", rapid.IntRange(0, 2000).Draw(r, "key"))
					if rapid.IntRange(0, 2).Draw(r, "delete") == 0 {
						delete(want[name], key)
						ok(t, b.Delete([]byte(key)))
						continue
					}
					value := bytes.Repeat([]byte{byte(len(key))}, length)
					want[name][key] = string(value)
					ok(t, b.Put([]byte(key), value))
				}
				return nil
			}))
		}
		got, problems := walked(t, path)
		if len(problems) > 0 {
			r.Fatal(problems)
		}
		if !maps.EqualFunc(got, want, maps.Equal) {
			r.Fatalf("%d buckets, want %d", len(got), len(want))
		}
	})
}

// A branch that leads back to itself would keep bbolt busy until the memory ends; a page that two branches lead to would
// be freed twice.
func TestAFileThatGoesRoundInACircleIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	ok(t, s.SetFollower("mirror", ports.Queue, markAt(7)))
	for i := range 300 {
		ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused(fmt.Sprint("item-", i))}))
	}
	ok(t, s.Close())
	circles := 0
	rewrite(t, filepath.Join(dir, stateName), func(b []byte) []byte {
		p := must(openPages(bytes.NewReader(b), int64(len(b))))
		for id := uint64(2); id < p.count; id++ {
			pg := b[id*p.pageSize:]
			if native.Uint16(pg[8:]) == branchPage {
				circles++
				native.PutUint64(pg[pageHeader+8:], id)
			}
		}
		return b
	})
	if circles == 0 {
		t.Fatal("there is no branch in the file")
	}
	s = state(t, dir)
	if d := s.Damaged(); len(d) != 1 || position(t, s, "mirror", ports.Queue) != 0 {
		t.Errorf("damaged %q", d)
	}
}

// Bbolt writes into what it takes for free.
func TestAPageThatIsInUseAndInTheListOfFreeOnesIsDamage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	id := must(s.Host()).ID
	ok(t, s.PushNonce("a"))
	ok(t, s.Close())
	rewrite(t, filepath.Join(dir, stateName), func(b []byte) []byte {
		p := must(openPages(bytes.NewReader(b), int64(len(b))))
		list := b[p.freelist*p.pageSize:]
		count := native.Uint16(list[10:])
		ids := []uint64{p.root}
		for i := range int(count) {
			ids = append(ids, native.Uint64(list[pageHeader+8*i:]))
		}
		slices.Sort(ids)
		native.PutUint16(list[10:], count+1)
		for i, id := range ids {
			native.PutUint64(list[pageHeader+8*i:], id)
		}
		return b
	})
	s = state(t, dir)
	if h := must(s.Host()); len(s.Damaged()) != 1 || h.ID != id || !slices.Equal(h.Nonces, []string{"a"}) {
		t.Errorf("%+v, damaged %q", h, s.Damaged())
	}
}

func TestTheOlderMetaPageCountsWhenTheNewerIsDamaged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	id := must(s.Host()).ID
	ok(t, s.PushNonce("a"))
	ok(t, s.PushNonce("b"))
	ok(t, s.Close())
	rewrite(t, filepath.Join(dir, stateName), func(b []byte) []byte {
		p := must(openPages(bytes.NewReader(b), int64(len(b))))
		b[p.tx%2*p.pageSize+pageHeader+50] ^= 1
		return b
	})
	s = state(t, dir)
	if h := must(s.Host()); h.ID != id || !slices.Equal(h.Nonces, []string{"a"}) || len(s.Damaged()) > 0 {
		t.Errorf("%+v, damaged %q", h, s.Damaged())
	}
}

// Each field of a page is set to each of some values, one at a time.
func TestNoFieldOfAPageCanEndTheProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := state(t, dir)
	s.db.NoSync = true
	for i := range 40 {
		ok(t, s.SetUnsettled("mirror", ports.Queue, []ports.Unsettled{refused(fmt.Sprint("item-", i))}))
		ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(uint64(i+1), 3000)}))
	}
	ok(t, s.Close())
	path := filepath.Join(dir, stateName)
	content := must(os.ReadFile(path))
	p := must(openPages(bytes.NewReader(content), int64(len(content))))
	_, problems := walked(t, path)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	rapid.Check(t, func(r *rapid.T) {
		b := slices.Clone(content[:p.count*p.pageSize])
		for range rapid.IntRange(1, 3).Draw(r, "fields") {
			pg := b[rapid.Uint64Range(2, p.count-1).Draw(r, "page")*p.pageSize:]
			value := rapid.OneOf(rapid.Uint64Range(0, p.count+1), rapid.Uint64(), rapid.Just(uint64(0xFFFF)), rapid.Just(uint64(1)<<63)).Draw(r, "value")
			switch field := rapid.IntRange(0, 9).Draw(r, "field"); field {
			case 0:
				native.PutUint64(pg, value)
			case 1:
				native.PutUint16(pg[8:], 1<<(value%5))
			case 2:
				native.PutUint16(pg[10:], uint16(value))
			case 3:
				native.PutUint32(pg[12:], uint32(value))
			default: // of an element, or an id in the list of free pages
				at := pageHeader + 4*rapid.IntRange(0, 20).Draw(r, "element")
				if field < 7 {
					native.PutUint32(pg[at:], uint32(value))
				} else {
					native.PutUint64(pg[at:], value)
				}
			}
		}
		dir := must(os.MkdirTemp(t.TempDir(), ""))
		ok(t, os.WriteFile(filepath.Join(dir, stateName), b, 0o600))
		s, err := OpenState(dir, StateOptions{})
		if err != nil {
			r.Fatal(err)
		}
		defer s.Close()
		s.db.NoSync = true
		for _, err := range []error{s.PushNonce("after"), s.SetAside(ports.Queue, []ports.Aside{aside(99, 10)}), s.DropAside(ports.Queue, 1, 2, 3, 99)} {
			if err != nil {
				r.Fatal(err)
			}
		}
		for i := range 40 { // which frees pages and takes them again
			if err := s.DropUnsettled("mirror", ports.Queue, fmt.Sprint("item-", i)); err != nil {
				r.Fatal(err)
			}
		}
	})
}
