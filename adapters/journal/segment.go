package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sort"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// segment is one file of the journal. Seqs are contiguous within it; where a Seq was skipped, a new segment begins.
//
// Its header says where it begins and where the one before it ended, so that a gap in which nothing ever was can be told
// from entries that are lost, without a look into any other file.
type segment struct {
	header
	path    string
	last    uint64 // the last Seq in it, base-1 when it holds none
	size    int64  // of the file as far as it is durable
	begin   int64  // offset of the first frame
	damaged bool   // set aside: not all of it can be read
	missing bool   // its file is gone
	marks   []mark // sparse, ascending: where some of the entries begin
	resume  mark   // where the last Read ended, which is where the next one mostly begins
}

// empty says that the segment holds no entry.
func (s *segment) empty() bool { return s.last < s.base }

type header struct {
	base     uint64 // the first Seq that the segment can hold
	prev     uint64 // the last Seq before it that was durable; between prev and base nothing ever was
	prevBase uint64 // base of the segment that holds prev; 0 when there was none
	epoch    uuid.UUID
}

// The header: magic 8, version 4, base 8, prev 8, prevBase 8, epoch 16, CRC32C of all that 4.
const (
	headerBytes   = 56
	formatVersion = 1
)

var (
	headerMagic = []byte("HFjrnl\xA7\xF5")
	errHeader   = errors.New("the header is not readable")
	errNewer    = errors.New("it was written by a newer version")
)

func (h header) encode() []byte { return h.encodeVersion(formatVersion) }

func (h header) encodeVersion(version uint32) []byte {
	b := append(make([]byte, 0, headerBytes), headerMagic...)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint64(b, h.base)
	b = binary.LittleEndian.AppendUint64(b, h.prev)
	b = binary.LittleEndian.AppendUint64(b, h.prevBase)
	b = append(b, h.epoch[:]...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func decodeHeader(b []byte) (h header, err error) {
	if len(b) < headerBytes || string(b[:8]) != string(headerMagic) ||
		crc32.Checksum(b[:headerBytes-4], castagnoli) != binary.LittleEndian.Uint32(b[headerBytes-4:]) {
		return header{}, errHeader
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v > formatVersion {
		return header{}, fmt.Errorf("%w (format %d, this one knows %d)", errNewer, v, formatVersion)
	}
	h.base = binary.LittleEndian.Uint64(b[12:])
	h.prev = binary.LittleEndian.Uint64(b[20:])
	h.prevBase = binary.LittleEndian.Uint64(b[28:])
	copy(h.epoch[:], b[36:52])
	return h, nil
}

// A segment is called after its base. A damaged one gets the time behind its name and stays where it is: what is whole in
// it is still read. Once it is trimmed it loses the suffix of segments, is read no more and waits for a person.
const (
	segmentSuffix = ".seg"
	newSuffix     = ".seg.new"
	asideMark     = ".corrupt-"
)

func segmentName(base uint64) string { return fmt.Sprintf("%020d%s", base, segmentSuffix) }

// parseName gives the base in a segment's name, and whether the name says that it was set aside.
func parseName(name string) (base uint64, aside, ok bool) {
	name, _, aside = strings.Cut(name, asideMark)
	digits, found := strings.CutSuffix(name, segmentSuffix)
	if !found || len(digits) != 20 {
		return 0, false, false
	}
	base, err := strconv.ParseUint(digits, 10, 64)
	return base, aside, err == nil && base > 0
}

// markBytes is how far marks are apart at least.
const markBytes = 64 << 10

// mark is the offset at which an entry's frame begins.
type mark struct {
	seq uint64
	off int64
}

// addMark keeps a mark that lies far enough behind the last one.
func (s *segment) addMark(m mark) {
	if n := len(s.marks); n > 0 && (m.seq <= s.marks[n-1].seq || m.off < s.marks[n-1].off+markBytes) {
		return
	}
	s.marks = append(s.marks, m)
}

// offsetOf gives an offset at or before the entry with a Seq.
func (s *segment) offsetOf(seq uint64) int64 {
	if s.resume.seq == seq {
		return s.resume.off
	}
	i := sort.Search(len(s.marks), func(i int) bool { return s.marks[i].seq > seq })
	if i == 0 {
		return s.begin
	}
	return s.marks[i-1].off
}
