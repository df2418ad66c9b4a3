package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/ports"
)

// The pages of each of these files are all there, once each and in order, but bbolt would not have written them like that. It
// would take the file, and fail or lose something when it changes it.
func TestATreeThatBboltWouldNotWriteIsDamage(t *testing.T) {
	t.Parallel()
	const entries = 500
	tests := []struct {
		name   string
		change func(t *testing.T, d dbFile)
		kept   int // of the entries; -1 for some
	}{
		{"a leaf whose first key goes on into the value", func(_ *testing.T, d dbFile) { d.longer(d.leaf(1), 0, 3295) }, entries - 1},
		{"the same one byte far, on the first leaf", func(_ *testing.T, d dbFile) { d.longer(d.leaf(0), 0, 1) }, entries - 1},
		{"a later key that goes on into the value", func(_ *testing.T, d dbFile) { d.longer(d.leaf(1), 1, 1) }, entries - 1},
		{"a key that ends early", func(t *testing.T, d dbFile) {
			inside := d.b[bucketAt(t, d.b, string(asideBucket(ports.Manifest)))+pageHeader:]
			native.PutUint32(inside[pageHeader+8:], 5)
		}, entries},
		{"a branch whose key is not the first one below it", func(_ *testing.T, d dbFile) {
			lowest := d.page(d.child(d.root, 0))
			element := lowest[pageHeader+pageElement:]
			element[native.Uint32(element)+7]--
		}, entries},
		{"a branch below which another one has that key", func(_ *testing.T, d dbFile) {
			root := d.page(d.root)
			element := root[pageHeader+pageElement:]
			element[native.Uint32(element)+7]--
		}, entries},
		{"a leaf with nothing on it", func(_ *testing.T, d dbFile) { native.PutUint16(d.page(d.leaf(1))[10:], 0) }, -1},
		{"a branch with one child", func(_ *testing.T, d dbFile) {
			branch := d.page(d.child(d.root, 0))
			for i := 1; i < int(native.Uint16(branch[10:])); i++ {
				d.free(d.child(d.child(d.root, 0), i))
			}
			native.PutUint16(branch[10:], 1)
		}, -1},
		{"a leaf next to a branch", func(_ *testing.T, d dbFile) {
			branch := d.child(d.root, 0)
			for i := 1; i < int(native.Uint16(d.page(branch)[10:])); i++ {
				d.free(d.child(branch, i))
			}
			native.PutUint64(d.page(d.root)[pageHeader+8:], d.child(branch, 0))
			d.free(branch)
		}, -1},
		{"a bucket within a page that takes another page for its own", func(t *testing.T, d dbFile) {
			native.PutUint64(d.b[bucketAt(t, d.b, "nonces")+pageHeader:], d.leaf(1))
		}, entries},
	}
	dir := t.TempDir()
	s := state(t, dir)
	ok(t, s.PushNonce("a"))
	ok(t, s.SetAside(ports.Manifest, []ports.Aside{aside(7, 10)}))
	many := make([]ports.Aside, entries)
	for i := range many {
		many[i] = aside(uint64(10*i+10), 3500)
	}
	ok(t, s.SetAside(ports.Queue, many))
	ok(t, s.Close())
	content := must(os.ReadFile(filepath.Join(dir, stateName)))
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, stateName)
			b := slices.Clone(content)
			p := must(openPages(bytes.NewReader(b), int64(len(b))))
			c.change(t, dbFile{b, p, native.Uint64(b[bucketAt(t, b, string(asideBucket(ports.Queue))):])})
			if bytes.Equal(b, content) {
				t.Fatal("nothing was changed")
			}
			ok(t, os.WriteFile(file, b, 0o600))
			s := state(t, dir)
			if d := s.Damaged(); len(d) != 1 {
				t.Errorf("damaged %q", d)
			}
			if kept := len(must(s.Asides(ports.Queue, 0, 2*entries))); kept != c.kept && (c.kept >= 0 || kept == 0 || kept >= entries) {
				t.Errorf("%d entries are kept, want %d", kept, c.kept)
			}
			for i := range 20 {
				ok(t, s.PushNonce("b"))
				ok(t, s.DropAside(ports.Queue, uint64(10*i+10)))
				ok(t, s.SetAside(ports.Queue, []ports.Aside{aside(uint64(10*i+11), 3500)}))
			}
			must(s.Asides(ports.Manifest, 0, 10))
		})
	}
}

// dbFile is a file of bbolt to be damaged; root is that of a bucket with branches on two levels.
type dbFile struct {
	b    []byte
	p    *pages
	root uint64
}

func (d dbFile) page(id uint64) []byte { return d.b[id*d.p.pageSize:] }

func (d dbFile) child(branch uint64, i int) uint64 {
	return native.Uint64(d.page(branch)[pageHeader+i*pageElement+8:])
}

// leaf is the i-th leaf below the first branch.
func (d dbFile) leaf(i int) uint64 { return d.child(d.child(d.root, 0), i) }

// longer moves bytes of a value into its key.
func (d dbFile) longer(leaf uint64, i int, by uint32) {
	element := d.page(leaf)[pageHeader+i*pageElement:]
	native.PutUint32(element[8:], native.Uint32(element[8:])+by)
	native.PutUint32(element[12:], native.Uint32(element[12:])-by)
}

// free puts a page, with all that belongs to it, into the list of free ones.
func (d dbFile) free(id uint64) {
	list := d.page(d.p.freelist)
	count := uint64(native.Uint16(list[10:]))
	var ids []uint64
	for i := range count {
		ids = append(ids, native.Uint64(list[pageHeader+8*i:]))
	}
	for more := range uint64(native.Uint32(d.page(id)[12:])) + 1 {
		ids = append(ids, id+more)
	}
	slices.Sort(ids)
	native.PutUint16(list[10:], uint16(len(ids)))
	for i, id := range ids {
		native.PutUint64(list[pageHeader+8*i:], id)
	}
}
