package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Sent is when a hub that holdfast joined sent a write: milliseconds, and the hub's own count.
type Sent struct {
	Ms    int64
	Count uint64
}

// before says that neither number is greater, and that one is less.
func (s Sent) before(other Sent) bool {
	return s.Ms <= other.Ms && s.Count <= other.Count && s != other
}

// mark is what set a member: a live write of a hub, or something sent again that told the time up to which it is known.
type mark struct {
	sent  Sent
	until int64 // of what was sent again: milliseconds
}

// FromHub takes one action of a hub that holdfast joined.
func (m *Model) FromHub(action string, settings json.RawMessage, sent Sent) Answer {
	m.expire()
	return m.applyAs(action, settings, false, "", &sent)
}

// waiting is an early write.
type waiting struct {
	write write
	at    time.Time
}

// The limits of early writes.
const (
	earlyFor      = 24 * time.Hour
	earlyPerKey   = 100
	earlyInAll    = 100_000
	earlyKeyBytes = 4 << 20
)

// expire drops the early writes that have waited for more than a day.
func (m *Model) expire() {
	for key, list := range m.early {
		var kept []waiting
		for _, w := range list {
			if m.options.Now().Sub(w.at) > earlyFor {
				m.Dropped++
			} else {
				kept = append(kept, w)
			}
		}
		if m.early[key] = kept; kept == nil {
			delete(m.early, key)
		}
	}
}

// Waiting counts the early writes.
func (m *Model) Waiting() (n int) {
	for _, list := range m.early {
		n += len(list)
	}
	return n
}

// keepEarly keeps a hub's write until its item comes.
func (m *Model) keepEarly(w write) Answer {
	size := len(w.record.JSON())
	for _, other := range m.early[w.key] {
		size += len(other.write.record.JSON())
		if other.write.action == w.action && *other.write.sent == *w.sent && other.write.eventID == w.eventID {
			return Answer{Success: true, Early: true, EventID: w.eventID}
		}
	}
	if len(m.early[w.key]) >= earlyPerKey || size > earlyKeyBytes || m.Waiting() >= earlyInAll {
		return Answer{Code: "full", Reason: "too much waits for its item", EventID: w.eventID}
	}
	m.early[w.key] = append(m.early[w.key], waiting{w, m.options.Now()})
	return Answer{Success: true, Early: true, EventID: w.eventID}
}

// arrived applies what waited for an item that is there now.
func (m *Model) arrived(key string) {
	list := m.early[key]
	delete(m.early, key)
	for _, w := range list {
		if a := m.decide(w.write, ""); a.Success {
			m.Applied++
		} else {
			m.Dropped++
		}
	}
}

// live says whether a write is a live one of a hub.
func (w *write) live() bool { return w.sent != nil && !w.again }

// marked sets what a new row's members were set by.
func (m *Model) marked(row string, w write, timeOf string) {
	delete(m.marks, row)
	if w.sent == nil {
		return
	}
	by := mark{sent: *w.sent}
	if w.again {
		at, ok := w.record.time(timeOf)
		if !ok {
			return
		}
		by = mark{until: at.UnixMilli()}
	}
	m.marks[row] = map[string]mark{}
	for _, g := range w.record {
		m.marks[row][g.Name] = by
	}
}

func (m *Model) mark(row, member string, by mark) {
	if m.marks[row] == nil {
		m.marks[row] = map[string]mark{}
	}
	m.marks[row][member] = by
}

// lay lays a hub's members over those of a row that no later write has set. It gives the row, and whether anything was refused
// for being late.
func (m *Model) lay(row string, present Object, w write, timeOf string, fixed ...string) (merged Object, late bool) {
	by := mark{sent: *w.sent}
	if w.again {
		at, _ := w.record.time(timeOf)
		by = mark{until: at.UnixMilli()}
	}
	merged = present
	for _, g := range w.record {
		if slices.Contains(fixed, g.Name) {
			continue
		}
		now, held := present.Get(g.Name), m.marks[row][g.Name]
		differs := now == nil || !bytes.Equal(now, g.Value)
		switch {
		case held == by:
			continue
		case held == mark{}:
		case held.until != 0 && w.again: // it is later: that was asked before
		case held.until != 0 && w.sent.Ms < held.until, held.until == 0 && w.sent.before(held.sent),
			held.until == 0 && w.again && by.until-1 <= held.sent.Ms:
			late = late || differs
			continue
		}
		m.mark(row, g.Name, by)
		merged = merged.With(g.Name, g.Value)
	}
	return merged, late
}

// unfilled are the members that a hub's write may not fill: what a later live write has set.
func (m *Model) unfilled(row string, w write) (names []string) {
	for name, by := range m.marks[row] {
		if w.sent != nil && (w.action == "QP_InsertAttempt" || by.until == 0 && w.sent.before(by.sent)) {
			names = append(names, name)
		}
	}
	return names
}

// patchFromHub is an upsert or update of an item that is there, or an outcome of an attempt.
func (m *Model) patchFromHub(row string, present Object, w write, store func(Object) Answer, fixed ...string) Answer {
	before := maps.Clone(m.marks[row])
	merged, late := m.lay(row, present, w, "LastEventAt", fixed...)
	differences := len(Diff(present, merged))
	onlyComputed := merged.Without("HealthComputedAt").Same(present.Without("HealthComputedAt"))
	if w.action == "QP_UpdateWorkItem" && onlyComputed {
		merged, differences = present, 0
		m.mark(row, "HealthComputedAt", before["HealthComputedAt"])
		if health(w.record) {
			m.marks[row] = before // nothing of it is kept
		}
	}
	a := success
	if differences > 0 {
		if a = store(merged); !a.Success {
			m.marks[row] = before
		}
	} else if late {
		a.Late = true
	}
	return a
}

func health(patch Object) bool {
	for _, g := range patch {
		if !strings.HasPrefix(g.Name, "Health") {
			return false
		}
	}
	return true
}

// manifestFromHub says what becomes of a hub's manifest where one is there: nothing, or what the answer is.
func (m *Model) manifestFromHub(present Object, w write) (a Answer, done bool) {
	held, marked := m.marks["manifest "+w.key]["*"]
	same := bytes.Equal(bytes.TrimSpace(present.JSON()), bytes.TrimSpace(w.record.JSON()))
	live := marked && held.until == 0
	switch {
	case w.again && live && w.sent.before(held.sent):
		return Answer{Success: true, Late: true}, true
	case w.again:
		return success, live && !replacesManifest(present, w.record)
	case live && *w.sent == held.sent:
		return success, true
	case live && w.sent.before(held.sent), marked && held.until != 0 && w.sent.Ms < held.until:
		return Answer{Success: true, Late: !same}, true
	}
	return success, false
}

// markManifest notes what set a manifest.
func (m *Model) markManifest(w write) {
	if w.sent == nil {
		return
	}
	row := "manifest " + w.key
	held := m.marks[row]["*"]
	if !w.again {
		m.mark(row, "*", mark{sent: *w.sent})
		return
	}
	if at, ok := w.record.time("StopTime"); ok && (held.until != 0 && at.UnixMilli() > held.until || held.until == 0 && at.UnixMilli()-1 > held.sent.Ms) {
		m.mark(row, "*", mark{until: at.UnixMilli()})
	}
}

// hubEvent is by what a hub's event is known that has no EventGUID: the work that carried it, and what it says.
func hubEvent(w write) string {
	return fmt.Sprintf("hub %d-%d %s", w.sent.Ms, w.sent.Count, content(w.record))
}
