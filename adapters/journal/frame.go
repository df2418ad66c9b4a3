package journal

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"

	"holdfast/ports"
)

// A segment is a header and frames. A frame is
//
//	magic   3 bytes, no valid UTF-8 text contains them, so that a reader finds the next frame behind damage
//	kind    1 byte
//	length  4 bytes, little endian, of the payload
//	crc     4 bytes, CRC32C of kind, length and payload
//	payload a varint Seq, then by kind
//
//	entry   the binary form of an entry, with its record
//	large   the binary form without the record's bytes, which follow in part frames
//	part    the next bytes of a large entry's record
const (
	frameHead  = 12
	partBytes  = 1 << 20 // a record longer than this goes into parts of this size
	maxPayload = partBytes + maxEnvelope
	// maxEnvelope bounds what an entry may hold beside its record.
	maxEnvelope = 256 << 10

	kindEntry byte = 'E'
	kindLarge byte = 'L'
	kindPart  byte = 'P'
)

var (
	frameMagic = []byte{'h', 0xA7, 0xF5}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// openFrame appends room for a head and the Seq; sealFrame fills the head once the payload is there.
func openFrame(dst []byte, seq uint64) []byte {
	dst = append(dst, make([]byte, frameHead)...)
	return binary.AppendUvarint(dst, seq)
}

func sealFrame(frame []byte, kind byte, following []byte) {
	copy(frame, frameMagic)
	frame[3] = kind
	binary.LittleEndian.PutUint32(frame[4:], uint32(len(frame)-frameHead+len(following)))
	sum := crc32.Update(0, castagnoli, frame[3:8])
	sum = crc32.Update(sum, castagnoli, frame[frameHead:])
	sum = crc32.Update(sum, castagnoli, following)
	binary.LittleEndian.PutUint32(frame[8:], sum)
}

// appendFrame appends the frame of an entry that is not large.
func appendFrame(dst []byte, e *ports.Entry) []byte {
	at := len(dst)
	dst = openFrame(dst, e.Seq)
	dst = appendEntry(dst, e, true)
	sealFrame(dst[at:], kindEntry, nil)
	return dst
}

// isLarge says whether an entry's record goes into parts.
func isLarge(e *ports.Entry) bool { return len(e.Record) > partBytes }

// largeFrames calls write with the frames of a large entry piece by piece, so that its record is never copied. The pieces
// are valid only during the call.
func largeFrames(e *ports.Entry, write func(piece []byte) error) error {
	head := appendEntry(openFrame(nil, e.Seq), e, false)
	sealFrame(head, kindLarge, nil)
	if err := write(head); err != nil {
		return err
	}
	for rest := e.Record; len(rest) > 0; {
		body := rest[:min(partBytes, len(rest))]
		rest = rest[len(body):]
		head = openFrame(head[:0], e.Seq)
		sealFrame(head, kindPart, body)
		if err := write(head); err != nil {
			return err
		}
		if err := write(body); err != nil {
			return err
		}
	}
	return nil
}

// largeSize is what largeFrames writes in all.
func largeSize(e *ports.Entry) int64 {
	seq := len(binary.AppendUvarint(nil, e.Seq))
	head := frameHead + seq + len(appendEntry(nil, e, false))
	parts := (len(e.Record) + partBytes - 1) / partBytes
	return int64(head + parts*(frameHead+seq) + len(e.Record))
}

// frameBound is at least what an entry takes in a segment.
func frameBound(e *ports.Entry) int64 {
	parts := len(e.Record)/partBytes + 2
	return int64(len(e.Record)+envelopeBound(e)) + int64(parts)*(frameHead+binary.MaxVarintLen64)
}

// frame is one that was read and whose CRC is right. Body is valid until the source is asked again.
type frame struct {
	kind byte
	seq  uint64
	body []byte // the payload behind the Seq
	end  int64  // offset behind the frame
}

// frameAt reads the frame at an offset; ok is false when there is none that is whole and right.
func frameAt(s *source, off int64) (f frame, ok bool, err error) {
	head, err := s.bytes(off, frameHead)
	if err != nil || len(head) < frameHead || !bytes.HasPrefix(head, frameMagic) {
		return frame{}, false, err
	}
	length := binary.LittleEndian.Uint32(head[4:])
	if length > maxPayload {
		return frame{}, false, nil
	}
	whole, err := s.bytes(off, frameHead+int(length))
	if err != nil || len(whole) < frameHead+int(length) {
		return frame{}, false, err
	}
	sum := crc32.Update(0, castagnoli, whole[3:8])
	if crc32.Update(sum, castagnoli, whole[frameHead:]) != binary.LittleEndian.Uint32(whole[8:]) {
		return frame{}, false, nil
	}
	seq, n := binary.Uvarint(whole[frameHead:])
	if n <= 0 {
		return frame{}, false, nil
	}
	return frame{kind: whole[3], seq: seq, body: whole[frameHead+n:], end: off + int64(len(whole))}, true, nil
}

// nextFrame looks from an offset on for a frame that begins an entry with a Seq between low and high. Its offset is the
// source's end when there is none.
func nextFrame(s *source, off int64, low, high uint64) (int64, error) {
	for off < s.end {
		window, err := s.bytes(off, readWindow)
		if err != nil {
			return 0, err
		}
		at := bytes.Index(window, frameMagic)
		if at < 0 {
			off += max(1, int64(len(window)-len(frameMagic)+1))
			continue
		}
		off += int64(at)
		f, ok, err := frameAt(s, off)
		if err != nil {
			return 0, err
		}
		if ok && f.kind != kindPart && f.seq >= low && f.seq <= high {
			return off, nil
		}
		off++
	}
	return s.end, nil
}
