package journal

import (
	"errors"
	"fmt"
)

// pageWalk goes through a file of bbolt, each page once, whatever the pages say. What is wrong is told and left out.
type pageWalk struct {
	*pages
	bucket  func(name string, sequence uint64)
	visit   func(bucket string, key, value []byte)
	problem func(bucket string, err error) // "" is the file itself
	told    int
}

// run walks through every bucket, and then looks whether each page is in use or free.
func (w *pageWalk) run() {
	w.tree("", w.root, nil, nil)
	if w.told == 0 {
		w.free()
	}
}

func (w *pageWalk) tell(bucket string, err error) {
	w.told++
	w.problem(bucket, err)
}

// tree walks through what hangs on a page and says how many branches are above its leaves. Keys must begin with low and
// stay before high; nil is no bound, and no low is a root.
//
// A branch has two children or more, all equally high, and no leaf below one is empty: bbolt writes it like that, and
// merges neighbours without another look.
func (w *pageWalk) tree(bucket string, id uint64, low, high []byte) (height int) {
	pg, err := w.read(id, branchPage|leafPage)
	if err != nil {
		w.tell(bucket, err)
		return 0
	}
	if pg.flags == leafPage {
		w.leaf(bucket, pg, low, high)
		return 0
	}
	if pg.count < 2 {
		w.tell(bucket, fmt.Errorf("page %d is a branch with less than two children", id))
	}
	for i := range pg.count {
		key, child, err := pg.child(i)
		if err == nil {
			err = inOrder(pg, i, low, key, high)
		}
		if err != nil {
			w.tell(bucket, err)
		}
		below := high
		if i+1 < pg.count {
			if next, _, err := pg.child(i + 1); err == nil {
				below = next
			}
		}
		under := w.tree(bucket, child, key, below)
		if i > 0 && under != height {
			w.tell(bucket, fmt.Errorf("page %d has children that are not equally high", id))
		}
		low, height = key, under
	}
	return height + 1
}

func (w *pageWalk) leaf(bucket string, pg dbPage, low, high []byte) {
	if pg.count == 0 && low != nil {
		w.tell(bucket, fmt.Errorf("page %d is a leaf with nothing on it", pg.id))
	}
	for i := range pg.count {
		key, value, isBucket, err := pg.entry(i)
		if err == nil && isBucket != (bucket == "") {
			err = fmt.Errorf("element %d of page %d has a bucket where none can be, or none where one must be", i, pg.id)
		}
		if err != nil {
			w.tell(bucket, err)
			continue
		}
		if err := inOrder(pg, i, low, key, high); err != nil {
			w.tell(bucket, err) // what it is may be whole all the same
		}
		low = key
		if isBucket {
			w.enter(string(key), value)
			continue
		}
		w.visit(bucket, key, value)
	}
}

// enter walks through a bucket: a tree of its own, or a leaf within the value.
func (w *pageWalk) enter(name string, value []byte) {
	if len(value) < pageHeader {
		w.bucket(name, 0)
		w.tell(name, errors.New("a bucket is cut"))
		return
	}
	w.bucket(name, native.Uint64(value[8:]))
	if root := native.Uint64(value); root != 0 {
		w.tree(name, root, nil, nil)
		return
	}
	inside := value[pageHeader:]
	if len(inside) < pageHeader {
		w.tell(name, errors.New("a bucket is cut"))
		return
	}
	pg := dbPage{id: native.Uint64(inside), flags: native.Uint16(inside[8:]), count: int(native.Uint16(inside[10:])), body: inside}
	err := pg.fits()
	if err == nil && (pg.id != 0 || pg.flags != leafPage || native.Uint32(inside[12:]) != 0) { // bbolt frees the page of that id
		err = errors.New("a bucket within a page is not a leaf without a page of its own")
	}
	if err != nil {
		w.tell(name, err)
		return
	}
	w.leaf(name, pg, nil, nil)
}

// free reads the list of free pages. Bbolt writes into those.
func (w *pageWalk) free() {
	if w.freelist == noFreelist {
		return
	}
	pg, err := w.read(w.freelist, freelistPage)
	if err != nil {
		w.tell("", err)
		return
	}
	ids, count := pg.body[pageHeader:], uint64(pg.count)
	if count == 0xFFFF { // then the number stands in the first place
		count, ids = native.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids))/8 {
		w.tell("", fmt.Errorf("page %d has no room for its %d free pages", pg.id, count))
		return
	}
	last := uint64(1)
	for i := range count {
		id := native.Uint64(ids[8*i:])
		if id <= last || id >= w.count || w.used[id] {
			w.tell("", fmt.Errorf("page %d is in the list of free pages, where it cannot be", id))
			return
		}
		w.used[id], last = true, id
	}
	for id := uint64(2); id < w.count; id++ {
		if !w.used[id] {
			w.tell("", fmt.Errorf("page %d is neither in use nor free", id))
			return
		}
	}
}
