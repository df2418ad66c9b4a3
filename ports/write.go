package ports

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Family is one of the two halves of history. Each has a journal, followers and an assignment of its own.
type Family string

const (
	Queue    Family = "Queue"    // work items, their events and attempts
	Manifest Family = "Manifest" // operation manifests
)

// Families lists both.
var Families = []Family{Queue, Manifest}

// Action is a call as the bridges name it.
type Action string

// The seven writes and the six reads.
const (
	UpsertWorkItem       Action = "QP_UpsertWorkItem"
	UpdateWorkItem       Action = "QP_UpdateWorkItem"
	AppendEvent          Action = "QP_AppendEvent"
	InsertAttempt        Action = "QP_InsertAttempt"
	UpdateAttemptOutcome Action = "QP_UpdateAttemptOutcome"
	UpsertManifest       Action = "MS_UpsertManifest"
	RemoveManifest       Action = "MS_RemoveManifest"

	GetWorkItemByHash Action = "QP_GetWorkItemByHash"
	ListWorkItems     Action = "QP_ListWorkItems"
	GetEvents         Action = "QP_GetEvents"
	ListAttempts      Action = "QP_ListAttempts"
	GetManifest       Action = "MS_GetManifest"
	ListManifests     Action = "MS_ListManifests"
)

// Writes and Reads list the actions.
var (
	Writes = []Action{UpsertWorkItem, UpdateWorkItem, AppendEvent, InsertAttempt, UpdateAttemptOutcome, UpsertManifest, RemoveManifest}
	Reads  = []Action{GetWorkItemByHash, ListWorkItems, GetEvents, ListAttempts, GetManifest, ListManifests}
)

// IsWrite says whether the action is one of the seven writes.
func (a Action) IsWrite() bool { return slices.Contains(Writes, a) }

// Family says which half of history an action concerns; an unknown action gives "".
func (a Action) Family() Family {
	switch a {
	case UpsertManifest, RemoveManifest, GetManifest, ListManifests:
		return Manifest
	case UpsertWorkItem, UpdateWorkItem, AppendEvent, InsertAttempt, UpdateAttemptOutcome,
		GetWorkItemByHash, ListWorkItems, GetEvents, ListAttempts:
		return Queue
	}
	return ""
}

// Class says which half of the decision table a write falls under.
type Class string

const (
	Live    Class = "live"    // as things happen
	Reflush Class = "reflush" // a hub, an import or an adoption sends again what it has
)

// Origins of a write.
const (
	OriginHTTP   = "http"
	OriginMember = "member"
	OriginHub    = "hub"
	OriginImport = "import"
)

// Stamp orders the writes of one hub: both numbers stand in the WorkItemHash of the work that carried the write.
type Stamp struct {
	Ms    int64  // epoch milliseconds
	Count uint64 // of the hub's process, from 1
}

// Older says whether a write was certainly sent before another: neither number is greater, and one is less. A hub that was
// started again counts from 1 again.
func (s Stamp) Older(than Stamp) bool {
	return s.Ms <= than.Ms && s.Count <= than.Count && s != than
}

// IsZero says that the write came from no hub.
func (s Stamp) IsZero() bool { return s == Stamp{} }

// Entry is one accepted write: what the journal keeps and the local store decides. An Entry is never changed once the
// journal has given it its Seq; Record belongs to the Entry and is read only.
type Entry struct {
	Seq    uint64
	Action Action
	Class  Class
	Key    string // WorkItemHash or RunHash
	Number int64  // AttemptNumber, at least 1, of InsertAttempt and UpdateAttemptOutcome
	Record []byte // the record or the patch, one JSON object; nil for a removal

	// What the first write of a record fixes for good.
	ReceivedMs int64  // milliseconds since 1970; never lower than that of the entry before
	Host       string // the short id of the host that accepted it
	Actor      string // token, user or hub
	Origin     string // one of the Origin constants
	EventGUID  string // of an event; GUIDGiven says that the caller gave it
	GUIDGiven  bool

	// Stamp is when a hub that we joined sent the write, by its own count; zero for every other write.
	Stamp Stamp

	// Again is the Seq of the set-aside entry that this one replays; 0 for an ordinary write.
	Again uint64
}

// OrderKey orders events and manifests: the milliseconds of their acceptance, the Seq, the host. It is compared bytewise.
func (e *Entry) OrderKey() string {
	seq := e.Seq
	if e.Again != 0 {
		seq = e.Again
	}
	b := make([]byte, 0, 48)
	b = appendPadded(b, uint64(max(e.ReceivedMs, 0)), 14)
	b = append(b, '-')
	b = appendPadded(b, seq, 16)
	b = append(b, '-')
	return string(append(b, e.Host...))
}

// OrderSeq reads an OrderKey: the Seq of the record's first write, and the short id of the host that accepted it; ok is false for a
// key that no host made.
func OrderSeq(key string) (seq uint64, host string, ok bool) {
	parts := strings.SplitN(key, "-", 3)
	if len(parts) != 3 || parts[2] == "" {
		return 0, "", false
	}
	seq, err := strconv.ParseUint(parts[1], 10, 64)
	return seq, parts[2], err == nil
}

// ReceivedAt is ReceivedMs as the time text that records use.
func (e *Entry) ReceivedAt() string { return FormatMs(e.ReceivedMs) }

// Cost is what the entry counts against limits in bytes: its record and a fixed part for the rest.
func (e *Entry) Cost() int64 { return int64(len(e.Record)+len(e.Key)) + 160 }

// FormatMs gives milliseconds since 1970 as UTC text with three fraction digits, the form that records use.
func FormatMs(ms int64) string {
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z")
}

func appendPadded(b []byte, n uint64, width int) []byte {
	var digits [20]byte
	d := strconv.AppendUint(digits[:0], n, 10)
	for i := len(d); i < width; i++ {
		b = append(b, '0')
	}
	return append(b, d...)
}

// Limits of a record, refused at the Door and held by the local store for merged rows.
const (
	MaxKeyPoints   = 512      // code points of a key
	MaxDepth       = 400      // nesting of a record, the record itself being 1
	MaxRecordBytes = 64 << 20 // a record, also after a merge
	MaxLineBytes   = 65 << 20 // an NDJSON line, which holds a record and its envelope
)

// Limits of a batch to a backend.
const (
	MaxBatchEntries = 512
	MaxBatchBytes   = 4 << 20
	MaxPageBytes    = 16 << 20 // every page is cut there
	MaxMessageBytes = 72 << 20 // one message between host and plugin
)

// bytesPerSecond is how fast a store takes what a batch brings, at least.
const bytesPerSecond = 4 << 20

// TimeFor is what a batch of so many bytes may take beside the usual time. Host and plugins reckon alike: who waits for a batch
// waits as long as its store may work on it.
func TimeFor(bytes int64) time.Duration { return time.Duration(bytes) * time.Second / bytesPerSecond }
