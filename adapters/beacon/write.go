package beacon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"holdfast/ports"
)

// How one record becomes so at the beacon.

// whole puts an item or a manifest.
func (p *putting) whole(ctx context.Context, row *ports.Row, r *ports.Record) error {
	own, d := imprintOf(row, r), digestOf(r)
	r = r.Clone()
	if r.Get(r.Table.Key) == nil {
		r.Set(r.Table.Key, ports.AppendQuoted(nil, row.Key))
	}
	text, err := marked(r, own)
	if err != nil {
		return err
	}
	h, sum := p.known.of(row.Key), sumOfText(text)
	if h.sum == sum {
		return nil // it came before, in this session of the beacon
	}
	action, name := "QP_UpsertWorkItem", "WorkItem"
	if row.Kind == ports.KindManifest {
		action, name = "MS_UpsertManifest", "Manifest"
	}
	h.sum = ""
	p.note(p.gen, func(l *page) { l.may(row.Key, d) })
	if err := p.send(ctx, action, name, r, own); err != nil {
		return err
	}
	h.sum = sum
	p.note(p.gen, func(l *page) { l.is(row.Key, d, row.Change) })
	return nil
}

// write has the beacon do a write. What it does not know at all is the beacon's fault, and not the record's.
func (p *putting) write(ctx context.Context, action string, members ...member) error {
	r, err := p.at.call(ctx, action, p.class, members...)
	if err == nil && !r.success {
		err = r.refusal(action)
	}
	return ofTheBeacon(err)
}

func ofTheBeacon(err error) error {
	if e := ports.AsError(err); err != nil && e.Code == ports.Unimplemented {
		return ports.Errorf(ports.Unavailable, e.Op, "%s", e.Message)
	}
	return err
}

// event sends an event that the beacon does not show.
func (p *putting) event(ctx context.Context, row *ports.Row, r *ports.Record) error {
	own := imprintOf(row, r)
	r = r.Clone()
	r.Set("EventGUID", ports.AppendQuoted(nil, row.GUID))
	if r.Get("WorkItemHash") == nil {
		r.Set("WorkItemHash", ports.AppendQuoted(nil, row.Key))
	}
	if r.Get("EmittedAt") == nil && row.First.EmittedAt != "" { // for the beacon's other readers
		r.Set("EmittedAt", ports.AppendQuoted(nil, row.First.EmittedAt))
	}
	e := entryOf(r)
	shown, err := p.shown(ctx, row, e, own)
	if shown || err != nil {
		return err
	}
	err = p.send(ctx, "QP_AppendEvent", "Event", r, own)
	h := p.known.of(row.Key)
	if err != nil && ports.CodeOf(err) != ports.Conflict { // a store that keeps GUIDs apart had it already
		h.listed = false // what failed may have been done all the same
		if unknown(err) {
			p.known.doubt(row.Key, row.GUID)
		}
		return err
	}
	e.claimed, e.sum = row.GUID, own.Sum
	h.events = append(h.events, e)
	p.note(p.gen, func(l *page) { l.has(row.Key, e) })
	return nil
}

// shown says whether the beacon shows an event. One whose sending had no answer is looked for twice, with a while in between in
// which a beacon that answers has done what was sent before.
func (p *putting) shown(ctx context.Context, row *ports.Row, e entry, own imprint) (bool, error) {
	h := p.known.of(row.Key)
	doubtful := p.known.doubtful(row.Key, row.GUID)
	for look := 1; ; look++ {
		if !h.listed || doubtful {
			entries, err := p.at.events(ctx, p.class, row.Key)
			if err != nil {
				return false, ofTheBeacon(nothingWritten(err))
			}
			h.take(entries)
		}
		if at := shownBy(h.events, e); at >= 0 {
			is := &h.events[at]
			if is.claimed = row.GUID; is.sum != "" && is.sum != own.Sum {
				return false, ports.InField(ports.Conflict, "EventGUID", "the beacon has another event under it, and a beacon's events are never changed")
			}
			p.known.settle(row.Key, row.GUID)
			found := *is
			found.guid = row.GUID
			p.note(p.gen, func(l *page) { l.has(row.Key, found) })
			return true, nil
		}
		if !doubtful {
			return false, nil
		}
		if look == 2 {
			p.known.settle(row.Key, row.GUID)
			return false, nil
		}
		pause(p.begun, p.settle)
		if p.begun.Err() != nil {
			return false, errLater
		}
	}
}

// nothingWritten makes an error of a question one that says that nothing was written.
func nothingWritten(err error) error {
	if !unknown(err) {
		return err
	}
	e := *ports.AsError(err)
	e.Code = ports.Unavailable
	return &e
}

// take takes in the events that the beacon shows now; what was claimed before stays claimed.
func (h *holding) take(entries []entry) {
	for i := range h.events {
		if guid := h.events[i].claimed; guid != "" && h.events[i].guid == "" {
			if at := shownBy(entries, entry{guid: guid, content: h.events[i].content, when: h.events[i].when}); at >= 0 {
				entries[at].claimed = guid
			}
		}
	}
	h.events, h.listed = entries, true
}

// attempt puts an attempt: it is inserted, and what a beacon that has it already does not take then is patched. Nothing tells
// whether it is there; so one that came before in this session is only patched, if it was inserted with the same members.
func (p *putting) attempt(ctx context.Context, row *ports.Row, r *ports.Record) error {
	r = r.Clone()
	number := strconv.AppendInt(nil, row.Number, 10)
	r.Set("WorkItemHash", ports.AppendQuoted(nil, row.Key))
	r.Set("AttemptNumber", number)
	text := r.JSON()
	h, sum := p.known.of(row.Key), sumOfText(text)
	if h.attempts[row.Number] == sum {
		return nil
	}
	delete(h.attempts, row.Number)
	err := p.write(ctx, "QP_InsertAttempt", member{"Attempt", text})
	if err != nil && ports.CodeOf(err) != ports.Conflict { // one that has it already may say so
		return err
	}
	r.Drop("WorkItemHash", "AttemptNumber")
	if patch := r.JSON(); !bytes.Equal(patch, []byte("{}")) {
		err := p.write(ctx, "QP_UpdateAttemptOutcome", member{"WorkItemHash", ports.AppendQuoted(nil, row.Key)}, member{"AttemptNumber", number}, member{"Patch", patch})
		if err != nil {
			return err
		}
	}
	h.attempts[row.Number] = sum
	return nil
}

// remove removes a manifest. A beacon has no action that removes anything else; what it does not have is removed already.
func (p *putting) remove(ctx context.Context, row *ports.Row) error {
	switch row.Kind {
	case ports.KindManifest:
		p.known.of(row.Key).sum = ""
		p.note(p.gen, func(l *page) { l.mayGo(row.Key) })
		r, err := p.at.call(ctx, "MS_RemoveManifest", p.class, member{"RunHash", ports.AppendQuoted(nil, row.Key)})
		if err == nil && !r.success && !(r.reason != "" && r.absent("Manifest")) {
			err = r.refusal("MS_RemoveManifest")
		}
		if err != nil {
			return ofTheBeacon(err)
		}
		p.note(p.gen, func(l *page) { l.isGone(row.Key) })
		return nil
	case ports.KindItem:
		given, _, err := p.at.record(ctx, p.class, row.Key)
		if given == nil || err != nil {
			return ofTheBeacon(nothingWritten(err))
		}
	case ports.KindEvent:
		entries, err := p.at.events(ctx, p.class, row.Key)
		if err != nil {
			return ofTheBeacon(nothingWritten(err))
		}
		if shownBy(entries, entry{guid: row.GUID}) < 0 {
			return nil
		}
	}
	return ports.Errorf(ports.Unimplemented, "beacon", "a beacon has no action that removes a %s; it stays there", row.Kind)
}

func sumOfText(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}
