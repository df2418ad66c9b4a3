package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// How bbolt's file is read here without bbolt. Bbolt keeps no checksums, maps the file and trusts every page in it: a
// damaged one makes it read what is mapped elsewhere or nothing at all, in a goroutine whose faults nobody can catch, or go
// round in a circle until the stack or the memory ends. So it is given no file before each page was looked at. What can
// still be read of a damaged file is read in the same way.
//
//	meta      page header; magic, version, page size, flags (4 bytes each); root, sequence, freelist, pages, transaction,
//	          checksum (8 each). The first two pages; the newer valid one counts
//	branch    page header; for each child where its first key is, the key's length (4 each) and page (8); keys
//	leaf      page header; for each entry flags, where its key is, lengths of key and value (4 each); keys and values
//	bucket    a value: its root page and sequence (8 each); root 0: a leaf follows
//	freelist  page header; ids of free pages (8 each), ascending
//	header    id (8), flags, count (2 each), how many more pages belong to it (4); all in the machine's byte order
const (
	pageHeader  = 16
	pageElement = 16
	metaBytes   = 64
	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = 1<<64 - 1

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketEntry = 0x01
)

var native = binary.NativeEndian

// pages is an open file of bbolt.
type pages struct {
	file     io.ReaderAt
	pageSize uint64
	count    uint64 // of pages that were ever in use
	root     uint64
	freelist uint64
	tx       uint64
	used     []bool // by id: was read as a part of something
}

// dbPage is one that was read: with everything that belongs to it, and with room for as many elements as it says.
type dbPage struct {
	id    uint64
	flags uint16
	count int
	body  []byte
}

// openPages finds the newest meta page.
func openPages(file io.ReaderAt, size int64) (*pages, error) {
	newest, err := metaAt(file, 0, 0)
	if err == nil {
		if second, err := metaAt(file, int64(newest.pageSize), newest.pageSize); err == nil && second.tx > newest.tx {
			newest = second
		}
	}
	for at := int64(1 << 10); err != nil && at <= 64<<10; at *= 2 { // the page size is where the second one is
		newest, err = metaAt(file, at, uint64(at))
	}
	switch {
	case err != nil:
		return nil, err
	case newest.count > uint64(size)/newest.pageSize:
		return nil, fmt.Errorf("the file is cut: it has %d bytes, %d pages of %d were in use", size, newest.count, newest.pageSize)
	}
	newest.used = make([]bool, newest.count)
	return newest, nil
}

// metaAt reads the meta page at an offset. pageSize is what it must say; 0 for anything possible.
func metaAt(file io.ReaderAt, at int64, pageSize uint64) (*pages, error) {
	var b [pageHeader + metaBytes]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		return nil, fmt.Errorf("no meta page can be read: %w", err)
	}
	meta := b[pageHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaBytes-8])
	p := &pages{
		file: file, pageSize: uint64(native.Uint32(meta[8:])),
		root: native.Uint64(meta[16:]), freelist: native.Uint64(meta[32:]),
		count: native.Uint64(meta[40:]), tx: native.Uint64(meta[48:]),
	}
	possible := p.pageSize >= 1<<10 && p.pageSize <= 64<<10 && p.pageSize&(p.pageSize-1) == 0
	if native.Uint32(meta) != metaMagic || native.Uint32(meta[4:]) != metaVersion || native.Uint64(meta[56:]) != sum.Sum64() ||
		!possible || pageSize != 0 && pageSize != p.pageSize {
		return nil, errors.New("no meta page is valid")
	}
	return p, nil
}

// read gives a page of one of the kinds, once.
func (p *pages) read(id uint64, kinds uint16) (dbPage, error) {
	if id < 2 || id >= p.count {
		return dbPage{}, fmt.Errorf("page %d is out of range", id)
	}
	var head [pageHeader]byte
	if _, err := p.file.ReadAt(head[:], int64(id*p.pageSize)); err != nil {
		return dbPage{}, fmt.Errorf("page %d: %w", id, err)
	}
	pg := dbPage{id: native.Uint64(head[:]), flags: native.Uint16(head[8:]), count: int(native.Uint16(head[10:]))}
	more := uint64(native.Uint32(head[12:]))
	switch {
	case pg.id != id:
		return dbPage{}, fmt.Errorf("page %d says that it is %d", id, pg.id)
	case pg.flags&kinds == 0 || pg.flags&(pg.flags-1) != 0:
		return dbPage{}, fmt.Errorf("page %d is of another kind, %#x", id, pg.flags)
	case more >= p.count-id:
		return dbPage{}, fmt.Errorf("page %d reaches beyond the others", id)
	}
	for i := id; i <= id+more; i++ {
		if p.used[i] {
			return dbPage{}, fmt.Errorf("page %d is used twice", i)
		}
	}
	for i := id; i <= id+more; i++ {
		p.used[i] = true
	}
	pg.body = make([]byte, (more+1)*p.pageSize)
	if _, err := p.file.ReadAt(pg.body, int64(id*p.pageSize)); err != nil {
		return dbPage{}, fmt.Errorf("page %d: %w", id, err)
	}
	return pg, pg.fits()
}

// fits checks that the elements are within the page.
func (pg dbPage) fits() error {
	if pg.flags != freelistPage && pageHeader+pg.count*pageElement > len(pg.body) {
		return fmt.Errorf("page %d has no room for its %d elements", pg.id, pg.count)
	}
	return nil
}

// part gives a piece of the page that an element speaks of.
func (pg dbPage) part(element int, pos, length uint64) ([]byte, error) {
	from := uint64(pageHeader+element*pageElement) + pos
	if from < uint64(pageHeader+pg.count*pageElement) || from > uint64(len(pg.body)) || length > uint64(len(pg.body))-from {
		return nil, fmt.Errorf("element %d of page %d is not in it", element, pg.id)
	}
	return pg.body[from : from+length : from+length], nil
}

func (pg dbPage) child(i int) (key []byte, id uint64, err error) {
	e := pg.body[pageHeader+i*pageElement:]
	key, err = pg.part(i, uint64(native.Uint32(e)), uint64(native.Uint32(e[4:])))
	return key, native.Uint64(e[8:]), err
}

func (pg dbPage) entry(i int) (key, value []byte, bucket bool, err error) {
	e := pg.body[pageHeader+i*pageElement:]
	flags, pos, ksize, vsize := native.Uint32(e), uint64(native.Uint32(e[4:])), uint64(native.Uint32(e[8:])), uint64(native.Uint32(e[12:]))
	if flags&^bucketEntry != 0 {
		return nil, nil, false, fmt.Errorf("element %d of page %d has flags %#x", i, pg.id, flags)
	}
	if key, err = pg.part(i, pos, ksize); err != nil {
		return nil, nil, false, err
	}
	value, err = pg.part(i, pos+ksize, vsize)
	return key, value, flags == bucketEntry, err
}

// inOrder checks a key against the one before it on its page, and against what it must stay below; nil is no bound. At the
// first place before is the key that leads to the page, and that must be the same: under it bbolt looks for the page in
// its branch when it writes the page anew. Where it finds another one it leaves the old page in the tree, and frees it.
func inOrder(pg dbPage, i int, before, key, below []byte) error {
	order := 1
	if before != nil {
		order = bytes.Compare(key, before)
	}
	switch {
	case i == 0 && before != nil && order != 0:
		return fmt.Errorf("page %d does not begin with the key that leads to it", pg.id)
	case len(key) == 0 || i > 0 && order <= 0 || below != nil && bytes.Compare(key, below) >= 0:
		return fmt.Errorf("key %d of page %d is out of order", i, pg.id)
	}
	return nil
}
