package ports

import (
	"slices"
	"time"
)

// The decisions: what each write does to what is already there. The local store calls Decide inside its transaction, for
// one entry after the other, and applies the effect before the next; nothing else in the project decides a merge.

// Look shows Decide what the store holds, entries before this one of the same transaction included. A method gives nil for
// what is not there. Decide changes nothing that it gets.
type Look interface {
	Item(key string) (*Held, error)
	Event(guid string) (*Held, error)
	Attempt(key string, number int64) (*Held, error)
	Manifest(key string) (*Held, error)
	// Gone says whether the key has a tombstone.
	Gone(k Kind, key string) (bool, error)
	// Early gives the early writes that wait for an item, in the order in which they came, and how many wait in all. It is
	// asked only for writes of hubs.
	Early(key string) (waiting []Entry, inAll int, err error)
}

// Held is a record as the store holds it.
type Held struct {
	Record *Record
	First  First
	Change Change
	Stamps string // which hub's write set which member; "" for a row that no hub writes. It belongs to the local store alone
}

// Effect is what an entry does.
type Effect struct {
	Decision Decision
	Kind     Kind
	Key      string
	GUID     string // of an event
	Number   int64  // of an attempt
	Next     *Held  // to be written under Kind and Key (GUID, Number); nil: no record is written
	Present  *Held  // what Next replaces; nil: Next is new
	Bury     bool   // the record goes and leaves a tombstone
	Revive   bool   // the key's tombstone goes
	Keep     bool   // the entry itself is kept as an early write of its key
}

// Rules are the settings that decisions depend on.
type Rules struct {
	HostID    string        // becomes ChangeHost
	Retention time.Duration // 0 keeps for ever
}

// Decide says what an entry does. Its error is look's; a refusal is an Effect whose Outcome is Refused. The entry was
// checked at the Door: its action is one of the seven writes, its record is well formed and its key is there.
func Decide(e *Entry, look Look, rules Rules) (Effect, error) {
	d := decider{entry: e, look: look, rules: rules}
	d.effect.Decision = Decision{Seq: e.Seq, Outcome: Stored}
	d.effect.Key = e.Key
	var err error
	switch e.Action {
	case UpsertWorkItem, UpdateWorkItem:
		err = d.item()
	case AppendEvent:
		err = d.event()
	case InsertAttempt, UpdateAttemptOutcome:
		err = d.attempt()
	case UpsertManifest:
		err = d.manifest()
	case RemoveManifest:
		err = d.removal()
	default:
		d.refuse(InField(Invalid, "Action", "%q is not a write", e.Action))
	}
	return d.effect, err
}

type decider struct {
	entry  *Entry
	look   Look
	rules  Rules
	effect Effect
	marks  marks  // of the row after a hub's write; nil where it sets none
	stamps string // the same of a manifest
}

func (d *decider) outcome(o Outcome) { d.effect.Decision.Outcome = o }

func (d *decider) refuse(why *Error) {
	d.effect.Next = nil
	d.effect.Decision.Outcome, d.effect.Decision.Err = Refused, why
}

// parse takes the entry's record apart; a text that is none is refused.
func (d *decider) parse(t *Table) *Record {
	r, err := ParseRecord(t, d.entry.Record)
	if err != nil {
		d.refuse(AsError(err))
		return nil
	}
	return r
}

// store writes a record: over what is present, whose first write stays, or as a new one.
func (d *decider) store(present *Held, next *Record, emitted string) {
	if size := next.Size(); size > MaxRecordBytes {
		d.refuse(OverLimit(string(next.Table.Kind), "bytes after the merge", MaxRecordBytes, size))
		return
	}
	e := d.entry
	held := &Held{Record: next, Change: Change{Host: d.rules.HostID, Seq: e.Seq}}
	if present != nil {
		d.replaces(present)
		held.First = present.First
		if present.Stamps != "" || d.marks != nil {
			held.Stamps = d.stampsOf(present, next)
		}
	} else {
		held.First = First{ReceivedAt: e.ReceivedAt(), OrderKey: e.OrderKey(), Actor: e.Actor, Origin: e.Origin, EmittedAt: emitted}
		if next.Table.Kind == KindItem {
			key, ok := TimeKey(next.Text("EnqueuedAt"))
			if !ok {
				key = KeyOfTime(time.UnixMilli(e.ReceivedMs))
			}
			held.First.EnqueuedKey = key
		}
		if d.stamped() {
			held.Stamps = d.stampsOf(nil, next)
		}
	}
	if d.stamps != "" {
		held.Stamps = d.stamps
	}
	d.effect.Next, d.effect.Present = held, present
}

// replaces notes whose change gives way.
func (d *decider) replaces(present *Held) {
	host := present.Change.Host
	d.effect.Decision.Foreign = host != "" && host != d.rules.HostID
}

func (d *decider) item() error {
	d.effect.Kind = KindItem
	present, err := d.look.Item(d.entry.Key)
	if err != nil {
		return err
	}
	given := d.parse(Items)
	switch {
	case given == nil:
	case present == nil && d.entry.Action == UpdateWorkItem && d.waits():
		return d.early()
	case present == nil && d.entry.Action == UpdateWorkItem:
		d.outcome(Missing)
	case present == nil && d.entry.Class == Reflush && d.aged(given, TerminalItems, "LastEventAt", "CompletedAt", "EnqueuedAt"):
		d.outcome(Expired)
	case present == nil:
		d.store(nil, given, "")
	case d.entry.Class == Reflush && !later(present.Record, given, TerminalItems, "LastEventAt"):
		d.fill(present, given, "WorkItemHash", "EnqueuedAt")
	default:
		d.overwriteItem(present, given)
	}
	return nil
}

func (d *decider) overwriteItem(present *Held, given *Record) {
	if d.stamped() {
		d.overwriteStamped(present, given, "WorkItemHash", "EnqueuedAt")
		return
	}
	next := present.Record.Clone()
	changed := overwrite(next, given, "WorkItemHash", "EnqueuedAt")
	if len(changed) == 0 {
		return
	}
	// A hub recomputes the health of every open item every few seconds; the time alone says nothing new.
	if d.entry.Action == UpdateWorkItem && len(changed) == 1 && changed[0] == "HealthComputedAt" {
		return
	}
	d.store(present, next, "")
}

func (d *decider) event() error {
	d.effect.Kind, d.effect.GUID = KindEvent, d.entry.EventGUID
	present, err := d.look.Event(d.entry.EventGUID)
	if err != nil {
		return err
	}
	given := d.parse(Events)
	if given == nil {
		return nil
	}
	given.Set("EventGUID", AppendQuoted(nil, d.entry.EventGUID))
	if present != nil {
		d.outcome(AlreadyPresent)
		if d.entry.GUIDGiven && d.entry.Class != Reflush && !present.Record.Same(given) {
			d.refuse(InField(Conflict, "EventGUID", "is stored already with other content; give a new event a GUID of its own"))
		}
		return nil
	}
	emitted := d.entry.ReceivedAt()
	if d.waits() {
		if known, err := d.itemKnown(); err != nil || !known {
			if err != nil {
				return err
			}
			return d.early()
		}
	}
	if d.entry.Class == Reflush {
		emitted = ""
		if known, err := d.itemKnown(); err != nil || !known {
			d.outcome(Expired)
			return err
		}
	}
	if given.Get("EmittedAt") != nil {
		emitted = ""
	}
	d.store(nil, given, emitted)
	return nil
}

// waits says whether the write is one that waits for its item: a live one of a hub that we joined.
func (d *decider) waits() bool { return d.stamped() && d.entry.Class != Reflush }

func (d *decider) itemKnown() (bool, error) {
	item, err := d.look.Item(d.entry.Key)
	return item != nil, err
}

func (d *decider) manifest() error {
	d.effect.Kind = KindManifest
	present, err := d.look.Manifest(d.entry.Key)
	if err != nil {
		return err
	}
	gone, err := d.look.Gone(KindManifest, d.entry.Key)
	if err != nil {
		return err
	}
	given := d.parse(Manifests)
	switch {
	case given == nil:
	case d.entry.Class != Reflush:
		if present != nil && d.stamped() && d.liveManifest(present, given) {
			return nil
		}
		if present != nil && present.Record.Same(given) && string(present.Record.JSON()) == string(given.JSON()) {
			return nil
		}
		d.effect.Revive = gone
		d.store(present, given, "")
	case present == nil && (gone || d.aged(given, TerminalManifests, "StopTime", "StartTime")):
		d.outcome(Expired)
	case present == nil:
		d.store(nil, given, "")
	case d.hollow(present, laterManifest(present.Record, given)):
	case laterManifest(present.Record, given):
		next := present.Record.Clone()
		if by := toldStamp(given, "StopTime"); d.stamped() && by.Ms > whole(present.Stamps).Ms {
			d.stamps = by.one()
		}
		if len(overwrite(next, given, append(emptied(next, given), "Hash")...)) > 0 {
			d.store(present, next, "")
		}
	default:
		d.fill(present, given, "Hash")
	}
	return nil
}

func (d *decider) removal() error {
	d.effect.Kind = KindManifest
	present, err := d.look.Manifest(d.entry.Key)
	if err != nil {
		return err
	}
	if present == nil {
		d.outcome(AlreadyAbsent)
		return nil
	}
	if d.stamped() && d.entry.Stamp.Older(whole(present.Stamps)) {
		d.outcome(Late)
		return nil
	}
	d.replaces(present)
	d.effect.Present, d.effect.Bury = present, true
	return nil
}

// aged says whether a record that is sent again was finished longer ago than the retention in force.
func (d *decider) aged(r *Record, terminal []string, times ...string) bool {
	if d.rules.Retention <= 0 || !slices.Contains(terminal, r.Text("Status")) {
		return false
	}
	at := FinishedKey(r, times...)
	return at != "" && at < KeyOfTime(time.UnixMilli(d.entry.ReceivedMs).Add(-d.rules.Retention))
}

// fill writes given's members where the present record has none.
func (d *decider) fill(present *Held, given *Record, keep ...string) {
	next := present.Record.Clone()
	if fill(next, given, d.fixed(present, keep...)...) {
		d.store(present, next, "")
	}
}
