package ports

import (
	"encoding/base64"
	"encoding/json"
)

// Kind is the kind of a record.
type Kind string

const (
	KindItem     Kind = "WorkItem"
	KindEvent    Kind = "Event"
	KindAttempt  Kind = "Attempt"
	KindManifest Kind = "Manifest"
)

// Kinds lists the kinds of record, an item before its events and attempts.
var Kinds = []Kind{KindItem, KindEvent, KindAttempt, KindManifest}

// Family says which half of history a kind belongs to.
func (k Kind) Family() Family {
	if k == KindManifest {
		return Manifest
	}
	return Queue
}

// Row is a record in its present state, as backends exchange it. Two bodies are the same record when they have the same
// members with the same bytes, in whatever order; a manifest comes back as it was written, whole.
type Row struct {
	Kind   Kind
	Key    string // WorkItemHash or RunHash
	GUID   string // of an event
	Number int64  // of an attempt
	Gone   bool   // the record was removed; Body is nil
	Body   []byte // one JSON object with the members that callers gave, and an event's EventGUID
	First  First
	Change Change
}

// First is what the first write of a record fixed for good.
type First struct {
	ReceivedAt  string
	OrderKey    string
	EnqueuedKey string // of an item
	EmittedAt   string // of a live event whose caller gave none
	Actor       string
	Origin      string
}

// Change says who changed a record last.
type Change struct {
	Host string
	Seq  uint64
}

// Page is one page of rows, cut at the query's Limit and at MaxPageBytes, whichever comes first. Next is nil on the last
// page. Partial says that the search ran out of time: Next goes on from there, and rows may be fewer than asked.
type Page struct {
	Rows    []Row
	Next    *Cursor
	Partial bool
}

// Cursor is a place in a keyset order: the row after which a page begins. Its parts are immutable values of that row, so a
// page begun at one backend goes on at another.
type Cursor struct {
	Sort string `json:"s"` // EnqueuedKey, OrderKey or the natural key, as the order says
	Key  string `json:"k"` // the natural key: WorkItemHash, EventGUID, Hash
	Kind Kind   `json:"t,omitempty"`
	Num  int64  `json:"n,omitempty"` // AttemptNumber
}

// Token is the cursor as callers see it; ParseCursor reads it back and fails with Invalid.
func (c Cursor) Token() string {
	text, _ := json.Marshal(c) // strings and a number always marshal
	return base64.RawURLEncoding.EncodeToString(text)
}

// ParseCursor reads a token. An empty token gives nil.
func ParseCursor(token string) (*Cursor, error) {
	if token == "" {
		return nil, nil
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	var c Cursor
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		return nil, InField(Invalid, "cursor", "is not one of ours; leave it out to begin at the first page")
	}
	return &c, nil
}

// ItemFilter narrows a list of items. Empty members do not filter; all that are set must hold.
type ItemFilter struct {
	Status           []string // any of these
	Capability       string
	Action           string
	RunID            string
	RunHash          string
	OperationHash    string
	AssignedBeaconID string
	AffinityKey      string
	From, To         string // EnqueuedKey at or after From, before To
	ErrorText        string // LastError contains it, case kept; searched for a bounded time
}

// ItemQuery lists work items. OrderBy is "" for EnqueuedKey, or the name of a UVQueueWorkItem column; then there are no
// cursors and After is ignored.
type ItemQuery struct {
	Filter  ItemFilter
	OrderBy string
	Desc    bool
	After   *Cursor
	Limit   int
	Bodies  bool // with Settings and Result
}

// EventQuery lists the events of an item.
type EventQuery struct {
	Key    string
	Desc   bool
	After  *Cursor
	Limit  int
	Bodies bool // with Payload
}

// AttemptQuery lists the attempts of an item.
type AttemptQuery struct {
	Key   string
	After *Cursor
	Limit int
}

// ManifestQuery lists manifests by OrderKey. Without Bodies a row has only the members that are columns of UVManifest.
type ManifestQuery struct {
	OperationHash string
	Status        []string
	From, To      string // OrderKey at or after From, before To
	Desc          bool
	After         *Cursor
	Limit         int
	Bodies        bool
}

// ExportQuery walks a family in the order of natural keys.
type ExportQuery struct {
	Family Family
	After  *Cursor
	Limit  int
}
