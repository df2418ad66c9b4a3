package core

import (
	"time"

	"holdfast/ports"
)

// What a person can do about the other backends. The long ones tell how far they are, go on where they were interrupted or
// change nothing by being begun again, and end with their context.

// UnsettledStatus is one unsettled key of a backend, as `unsettled list` shows it.
type UnsettledStatus struct {
	Backend string
	Family  ports.Family
	Key     string
	Kind    ports.UnsettledKind
	Code    ports.Code `json:",omitempty"`
	Reason  string     `json:",omitempty"`
	First   uint64     // Seq of the change that was refused or is in doubt
	Last    uint64     // Seq of the newest change since
	At      time.Time
}

// Progress is how far a long operation is.
type Progress struct {
	Family  ports.Family
	Looked  int64 // records looked at so far
	Changed int64 // records copied, taken in or removed so far
}

// Difference is one record in which two backends are not equal.
type Difference struct {
	Family  ports.Family
	Kind    ports.Kind
	Key     string
	GUID    string   `json:",omitempty"` // of an event
	Number  int64    `json:",omitempty"` // of an attempt
	Only    string   `json:",omitempty"` // the backend that alone has it
	Members []string `json:",omitempty"` // that differ, where both have it
}

// Verification is the outcome of comparing two backends by key.
type Verification struct {
	A, B        string
	Compared    int64        // records that both have
	OnlyA       int64        // that only A has
	OnlyB       int64        // that only B has
	Different   int64        // that both have and that are not equal
	Pruned      int64        `json:",omitempty"` // that only the local store has, because the other one's own retention removed them; no difference
	Differences []Difference // the first maxDifferences of them
	OneWay      bool         `json:",omitempty"` // B cannot be walked; what only B has is not known
}

// Equal says that no difference was found.
func (v Verification) Equal() bool { return v.OnlyA+v.OnlyB+v.Different == 0 }

// Copied is the outcome of a copy.
type Copied struct {
	From, To  string
	Looked    int64             // records of the source
	Put       int64             // that the target had not, or not so
	Unsettled int64             // keys that the target refused
	Resumed   bool              // it went on where one before it was interrupted
	Refusals  []ports.Unsettled `json:",omitempty"` // the first maxDifferences of them
}

// Adopted is the outcome of taking a backend's records into the local store.
type Adopted struct {
	Backend string
	Looked  int64 // records of the backend
	Equal   int64 // that the local store had already, equal
	Taken   int64 // written again through the journal, as a re-flush
	Expired int64 // that the local store had once and does not take again
	Ignored int64 // that are about work which persistence itself causes
	Refused int64 // that the Door or the local store refused
}

// Exactness is the outcome of `resync --exact`.
type Exactness struct {
	Backend   string
	OnlyThere int64 // records that only the backend has
	Removed   int64 // how many of them were removed; none without the right count
}

// maxDifferences is how many differences an outcome lists.
const maxDifferences = 1000
