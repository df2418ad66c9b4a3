package journal

import (
	"encoding/binary"
	"hash/fnv"
	"io"
	"os"

	"holdfast/ports"
)

// What bbolt maps beyond the end of its file is not there to be read: the mapping faults, or shows what happens to be mapped
// behind it, and bbolt checks pages in a goroutine whose faults nobody can catch. So a file that was cut is told before it is
// mapped. A meta page is a page header and, in the machine's byte order, magic, version, page size, flags, root, sequence,
// freelist, high-water mark, transaction, checksum (bbolt's internal/common/meta.go).
const (
	metaHeader = 16
	metaBytes  = 64
	metaMagic  = 0xED0CDAED
)

// cutShort says that a file lacks pages that its newest meta page counts. A file without a valid meta page is bbolt's to
// refuse, and one that cannot be read here cannot be opened there.
func cutShort(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return nil //nolint:nilerr // bbolt makes it, or says why not
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	var counted uint64
	first, pageSize := metaAt(file, 0)
	if pageSize == 0 {
		pageSize = uint64(os.Getpagesize())
	}
	second, _ := metaAt(file, int64(pageSize))
	counted = max(first, second) * pageSize
	if have := uint64(info.Size()); have < counted {
		return ports.Errorf(ports.Internal, "", "the file is cut: it has %d bytes of %d", have, counted)
	}
	return nil
}

// metaAt reads the meta page at an offset: how many pages the file has, and their size; 0 when the page is not valid.
func metaAt(file io.ReaderAt, at int64) (pages, pageSize uint64) {
	var b [metaHeader + metaBytes]byte
	if _, err := file.ReadAt(b[:], at); err != nil {
		return 0, 0
	}
	meta := b[metaHeader:]
	sum := fnv.New64a()
	_, _ = sum.Write(meta[:metaBytes-8])
	if binary.NativeEndian.Uint32(meta) != metaMagic || binary.NativeEndian.Uint64(meta[metaBytes-8:]) != sum.Sum64() {
		return 0, 0
	}
	return binary.NativeEndian.Uint64(meta[40:]), uint64(binary.NativeEndian.Uint32(meta[8:]))
}
