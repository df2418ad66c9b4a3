package mesh

import (
	"bytes"

	"holdfast/ports"
)

// The frames between a member and its hub (wire contract A.9, A.11).

// memberSlots is what a member says that it takes at a time. A hub hands out no more, and each of its calls waits there for at
// most 5 s; so it is high.
const memberSlots = 256

// register sends the registration, which may be done again at any time: the hub keeps the record, makes it anew
// if it is gone, and goes on with a flush that ended early.
func (s *visit) register() error {
	m := s.member
	o := newObject(8<<10).str("Action", "BeaconRegister").str("Name", m.name).strs("Capabilities", persistence).
		raw("ActionSchemas", actionSchemas).number("MaxConcurrent", memberSlots).raw("Tags", []byte("{}")).
		str("HostID", m.hostID).raw("SharedMounts", []byte("[]"))
	if m.secret != "" {
		o.str("JoinSecret", m.secret)
	}
	return s.send(o.done())
}

// pushed is a work that a hub pushed.
type pushed struct {
	hash       string
	capability string
	action     ports.Action
	settings   []byte
	about      string // the WorkItemHash that the settings name
	marked     bool   // and that it is a work of ours; see marked
	size       int64
}

// frame takes a frame in. It fails with Invalid for one that no hub sends.
func (s *visit) frame(text []byte) error {
	var event, id, reason string
	var item bool
	w := pushed{size: int64(len(text))}
	enter := func(level int, name []byte) bool {
		switch level {
		case 1:
			return string(name) == `"WorkItem"`
		case 2:
			return string(name) == `"Settings"`
		case 3:
			return string(name) == `"WorkItem"` || string(name) == `"Event"` || string(name) == `"Attempt"`
		case 4:
			return string(name) == `"Settings"`
		}
		return false
	}
	err := ports.ScanNested(text, maxFrameDepth, enter, func(level int, name, value []byte) error {
		switch level {
		case 1:
			switch string(name) {
			case `"EventType"`:
				event = textOf(value)
			case `"BeaconID"`:
				id = textOf(value)
			case `"Reason"`:
				reason = textOf(value)
			case `"WorkItem"`:
				item = value[0] == '{'
			}
		case 2:
			w.take(name, value)
		case 5:
			w.marked = w.marked || string(name) == workMark
		default:
			if string(name) == `"WorkItemHash"` {
				w.about = textOf(value)
			}
		}
		return nil
	})
	switch {
	case err != nil:
		s.salvage(text, err)
		return ports.Wrap(ports.Invalid, "frame", err)
	case event == "WorkItem" && item && w.hash != "":
		s.member.take(s, w)
	case event == "WorkItem":
		return ports.Errorf(ports.Invalid, "frame", "a work without a WorkItemHash")
	case event == "BeaconRegistered" && id != "":
		s.mu.Lock()
		s.beaconID = id
		s.mu.Unlock()
		s.answer(registered{id: id})
	case event == "BeaconRejected":
		s.answer(registered{reason: reason})
	case event == "Deregistered":
		s.bye.Do(func() { close(s.gone) })
	}
	return nil
}

func (w *pushed) take(name, value []byte) {
	switch string(name) {
	case `"WorkItemHash"`:
		w.hash = textOf(value)
	case `"Capability"`:
		w.capability = textOf(value)
	case `"Action"`:
		w.action = ports.Action(textOf(value))
	case `"Settings"`:
		w.settings = value
	}
}

// answer tells whoever waits for it what the hub said to a registration; never waiting, since a hub may say it often.
func (s *visit) answer(r registered) {
	select {
	case s.answers <- r:
	default:
	}
}

// salvage refuses the work in a frame that could not be taken in, if it can be made out: the hub should not wait for a report
// that never comes.
func (s *visit) salvage(text []byte, why error) {
	if len(text) > 2*glance {
		text = append(bytes.Clone(text[:glance]), text[len(text)-glance:]...)
	}
	if !bytes.Contains(text, []byte(`"WorkItem"`)) {
		return
	}
	// The work's own hash comes first in what a hub writes, and stands outside of its settings.
	_, after, found := bytes.Cut(text, []byte(`"WorkItemHash":`))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !found || len(after) == 0 || after[0] != '"' {
		return
	}
	end := bytes.IndexByte(after[1:], '"')
	if end < 0 {
		return
	}
	// A flush ends for good at the first failure that it is told.
	again := bytes.Contains(text, []byte(`"IDBeaconWorkItem`))
	s.member.refuse(textOf(after[:end+2]), again, why)
}
