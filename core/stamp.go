package core

import (
	"crypto/sha256"
	"encoding/binary"
	"hash/maphash"
	"strconv"
	"sync"

	"github.com/google/uuid"

	"holdfast/ports"
)

// An event that brings no EventGUID gets one before it is journaled, so that no retry can double it. Where a repeat can be
// recognised the GUID is made from a name that ends in the event's content: only equal content can ever merge.

// space is the namespace of the name-based GUIDs; it must never change.
var space = uuid.MustParse("6f0f4ad4-5b0c-5d8e-9d0e-7a3c0f1e2b6d")

// flushID keeps the row id of an event that a hub sends again: it is what its GUID is made from.
func (c *checked) flushID(id []byte) {
	if c.entry.Action == ports.AppendEvent && !c.entry.GUIDGiven {
		c.entry.EventGUID = named("row", string(id), c.content())
	}
}

// stampGUID gives an event without a GUID its own.
func (c *checked) stampGUID(from *Source) {
	if c.entry.Action != ports.AppendEvent || c.entry.EventGUID != "" {
		return
	}
	switch {
	case from.Work != "": // a hub sends an event again as the same work
		c.entry.EventGUID = named("hub", from.Hub, from.Work, c.content())
	case from.Stream != nil:
		content := c.content()
		c.entry.EventGUID = named("stream", from.Stream.name, from.Stream.nth(content, from.Line), content)
	case from.Idempotency != "":
		c.entry.EventGUID = named("request", from.Actor, from.Idempotency, strconv.Itoa(from.Line), c.content())
	default:
		c.entry.EventGUID = uuid.Must(uuid.NewV7()).String()
	}
}

// content is the part of an event's name that says what it is.
func (c *checked) content() string {
	payload := sha256.Sum256(c.record.Get("Payload"))
	b := make([]byte, 0, 256)
	for _, member := range []string{"WorkItemHash", "EventType", "FromStatus", "ToStatus", "BeaconID"} {
		b = appendPart(b, string(c.record.Get(member)))
	}
	return string(append(b, payload[:]...))
}

func named(parts ...string) string {
	var b []byte
	for _, p := range parts {
		b = appendPart(b, p)
	}
	return uuid.NewSHA1(space, b).String()
}

// appendPart keeps parts apart whatever they hold.
func appendPart(b []byte, part string) []byte {
	b = binary.AppendUvarint(b, uint64(len(part)))
	return append(b, part...)
}

// maxStreamLines bounds what a Stream remembers; events behind that are told apart by their line.
const maxStreamLines = 1_000_000

// Stream is one reading of a file of actions from its beginning. The same file read again gives its events the same GUIDs,
// so that an ingest that broke off can simply be run again.
type Stream struct {
	name string
	seed maphash.Seed

	mu    sync.Mutex
	times map[uint64]uint32
}

// NewStream begins a reading of the stream of that name.
func NewStream(name string) *Stream {
	return &Stream{name: name, seed: maphash.MakeSeed(), times: map[uint64]uint32{}}
}

// nth tells how often this content was seen before.
func (s *Stream) nth(content string, line int) string {
	h := maphash.String(s.seed, content)
	s.mu.Lock()
	defer s.mu.Unlock()
	n, known := s.times[h]
	if !known && len(s.times) >= maxStreamLines {
		return "line " + strconv.Itoa(line)
	}
	s.times[h] = n + 1
	return strconv.FormatUint(uint64(n), 10)
}
