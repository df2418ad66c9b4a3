package core

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// What the host knew of its local store, against what it finds there: whether it may go on, and from where. A pure function.

// encounter is everything that the decision depends on.
type encounter struct {
	known    ports.LocalMark
	met      bool // known says something: this is not the first start
	standing ports.Standing
	nonces   []string // ours, newest first
	journals map[ports.Family]ports.Bounds
	accept   acceptance
	copies   []string // the followers that had history of this host
}

// beyond names those that may have what a store lacks to which the journal brings all that it has.
func (e *encounter) beyond() string {
	reaches := true
	for _, b := range e.journals {
		reaches = reaches && b.First <= 1
	}
	if reaches || len(e.copies) == 0 {
		return ""
	}
	return ", then `holdfast adopt " + strings.Join(e.copies, "` and `holdfast adopt ") + "` for what is older"
}

// acceptance is an operator's word on a store that holds other history.
type acceptance int

const (
	notAccepted acceptance = iota
	accepted               // go on with it as it is
	adopted                // go on, and bring it what the journal still has
)

// course is the decision.
type course struct {
	wait   string                  // why nothing may be committed until a person decides; "" to go on
	remedy string                  // what that person can do
	choice bool                    // accepting the store is one of those things
	resume map[ports.Family]uint64 // positions to move the store to
	lost   map[ports.Family]ports.Span
	mends  bool   // what is lost may be taken back from followers
	same   bool   // it is the store that the host knew
	note   string // what happened, for the log; "" when nothing did
}

func decideCourse(e encounter) course {
	c := course{resume: map[ports.Family]uint64{}, lost: map[ports.Family]ports.Span{}}
	same := !e.met || e.standing.StoreID == e.known.StoreID
	switch {
	case e.standing.Nonce != "" && !slices.Contains(e.nonces, e.standing.Nonce):
		c.wait = "the local store was written under this host's id by another copy of the data directory"
		c.remedy = "if this data directory is the copy, stop the host and run `holdfast local new-id`; " +
			"if it is the original and the copy has run, do so in both: what their journals still hold is committed then; " +
			"if it is an old backup, use the newest one"
		return c
	case !same && !e.standing.Empty && e.accept == notAccepted:
		c.wait = fmt.Sprintf("the local store %s is another one than before (%s) and holds other history", e.standing.StoreID, e.known.StoreID)
		c.choice = true
		c.remedy = "run `holdfast local accept --adopt` to go on with this one, and to bring it what the journal still has" + e.beyond() +
			"; without `--adopt` it is taken as it is; or bring the old store back"
		return c
	case !same && e.standing.Empty:
		c.note = "the local store is empty and new; it is filled from the journal"
	case same && e.met && len(e.nonces) > 0 && e.standing.Nonce != e.nonces[0]:
		c.note = "the local store is an older copy; it is brought forward from the journal"
	}
	c.same = same && e.met
	c.mends = same || e.standing.Empty
	for f, b := range e.journals {
		mark := e.standing.Marks[f].Seq
		had := e.known.Marks[f].Seq
		from := mark
		if e.known.Renamed && same || !same && !e.standing.Empty && e.accept == accepted {
			from = max(mark, had) // what was committed under another id, or to another store, is not committed again
		}
		if from+1 < b.First {
			// What another store had, or another host wrote, is not lost by going on here.
			span := ports.Span{From: from + 1, To: b.First - 1}
			if !same && !e.standing.Empty {
				span.From = max(span.From, had+1)
			}
			if (e.met || e.standing.Empty) && span.From <= span.To {
				c.lost[f] = span
			}
			from = b.First - 1
		}
		if from != mark {
			c.resume[f] = from
		}
	}
	return c
}
