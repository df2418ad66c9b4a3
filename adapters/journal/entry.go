package journal

import (
	"encoding/binary"
	"errors"

	"holdfast/ports"
)

// The binary form of an entry, without its Seq, which stands before it in the frame:
//
//	version  1 byte, 1; 2 with a stamp
//	flags    1 byte, see below
//	action   1 byte, its place in ports.Writes counted from 1; 0 and the text for any other
//	class    only with flagOtherClass: text
//	origin   1 byte, its place in origins counted from 1; 0 and the text for any other
//	number, receivedMs        zigzag varints
//	again                     varint, only with flagAgain
//	stamp                     zigzag varint and varint, only in version 2
//	key, host, actor, guid    text: a varint length and the bytes
//	record                    varint length, and the bytes unless they follow in parts
//
// A field can only be added under a new version; the old ones stay readable. What needs no newer one is written in the oldest, so
// that the holdfast before can read it too.
const (
	entryVersion   = 1
	stampedVersion = 2
)

const (
	flagReflush    = 1 << iota // Class is Reflush
	flagOtherClass             // Class is neither Live nor Reflush
	flagGUIDGiven
	flagAgain
	flagNoRecord // Record is nil, not empty
)

var origins = []string{ports.OriginHTTP, ports.OriginMember, ports.OriginHub, ports.OriginImport}

var errEntry = errors.New("not an entry of a known version")

// appendEntry appends the binary form. With inline false the record's bytes are left out and only its length stands there.
func appendEntry(dst []byte, e *ports.Entry, inline bool) []byte {
	var flags byte
	switch e.Class {
	case ports.Live:
	case ports.Reflush:
		flags |= flagReflush
	default:
		flags |= flagOtherClass
	}
	if e.GUIDGiven {
		flags |= flagGUIDGiven
	}
	if e.Again != 0 {
		flags |= flagAgain
	}
	if e.Record == nil {
		flags |= flagNoRecord
	}
	version := byte(entryVersion)
	if !e.Stamp.IsZero() {
		version = stampedVersion
	}
	dst = append(dst, version, flags)
	dst = appendCode(dst, ports.Writes, e.Action)
	if flags&flagOtherClass != 0 {
		dst = appendText(dst, string(e.Class))
	}
	dst = appendCode(dst, origins, e.Origin)
	dst = binary.AppendVarint(dst, e.Number)
	dst = binary.AppendVarint(dst, e.ReceivedMs)
	if e.Again != 0 {
		dst = binary.AppendUvarint(dst, e.Again)
	}
	if version == stampedVersion {
		dst = binary.AppendVarint(dst, e.Stamp.Ms)
		dst = binary.AppendUvarint(dst, e.Stamp.Count)
	}
	dst = appendText(dst, e.Key)
	dst = appendText(dst, e.Host)
	dst = appendText(dst, e.Actor)
	dst = appendText(dst, e.EventGUID)
	dst = binary.AppendUvarint(dst, uint64(len(e.Record)))
	if inline {
		dst = append(dst, e.Record...)
	}
	return dst
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendCode[T ~string](dst []byte, known []T, s T) []byte {
	for i, k := range known {
		if k == s {
			return append(dst, byte(i+1))
		}
	}
	return appendText(append(dst, 0), string(s))
}

// envelopeBound is at least what appendEntry appends beside the record.
func envelopeBound(e *ports.Entry) int {
	return 100 + len(e.Action) + len(e.Class) + len(e.Origin) + len(e.Key) + len(e.Host) + len(e.Actor) + len(e.EventGUID)
}

// decoder reads entries. It remembers the texts of the entry before, because neighbours mostly share them.
type decoder struct {
	rest   []byte
	failed bool
	host   string
	actor  string
	origin string
}

// entry reads one binary form into e and gives the length of its record. With inline true the record's bytes are copied
// out of b, else e.Record stays nil and b ends before it. Seq is left alone. What follows the entry is in d.rest.
func (d *decoder) entry(e *ports.Entry, b []byte, inline bool) (recordBytes int, err error) {
	d.rest, d.failed = b, false
	version, flags := d.byte(), d.byte()
	if version != entryVersion && version != stampedVersion {
		return 0, errEntry
	}
	seq := e.Seq
	*e = ports.Entry{Seq: seq, Class: ports.Live, GUIDGiven: flags&flagGUIDGiven != 0}
	e.Action = decodeCode(d, ports.Writes, "")
	switch {
	case flags&flagOtherClass != 0:
		e.Class = ports.Class(d.text(""))
	case flags&flagReflush != 0:
		e.Class = ports.Reflush
	}
	e.Origin = decodeCode(d, origins, d.origin)
	e.Number = d.varint()
	e.ReceivedMs = d.varint()
	if flags&flagAgain != 0 {
		e.Again = d.uvarint()
	}
	if version == stampedVersion {
		e.Stamp = ports.Stamp{Ms: d.varint(), Count: d.uvarint()}
	}
	e.Key = d.text("")
	e.Host = d.text(d.host)
	e.Actor = d.text(d.actor)
	e.EventGUID = d.text("")
	d.host, d.actor, d.origin = e.Host, e.Actor, e.Origin
	size := d.uvarint()
	if size > ports.MaxRecordBytes {
		return 0, errEntry
	}
	if inline {
		body := d.take(size)
		if flags&flagNoRecord == 0 && !d.failed {
			e.Record = append(make([]byte, 0, len(body)), body...)
		}
	}
	if d.failed {
		return 0, errEntry
	}
	return int(size), nil
}

func (d *decoder) byte() byte {
	if b := d.take(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (d *decoder) take(n uint64) []byte {
	if d.failed || n > uint64(len(d.rest)) {
		d.failed = true
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	if n <= 0 {
		d.failed = true
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

// text reads a text; when it equals before, before itself is given and nothing allocated.
func (d *decoder) text(before string) string {
	b := d.take(d.uvarint())
	if string(b) == before {
		return before
	}
	return string(b)
}

func decodeCode[T ~string](d *decoder, known []T, before T) T {
	code := int(d.byte())
	switch {
	case code == 0:
		return T(d.text(string(before)))
	case code <= len(known):
		return known[code-1]
	}
	d.failed = true
	return ""
}
