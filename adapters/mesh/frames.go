package mesh

import (
	"bytes"
	"strconv"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// The frames of the beacon protocol (wire contract A.9): texts with an Action from the beacon, texts with an EventType to it.
// The protocol has no acknowledgements; a frame that we refuse is told in one that stock clients pass over.

// rejected is the close code of a beacon that may not join.
const rejected websocket.StatusCode = 4403

// frame is what a beacon sent, its values as they came.
type frame struct {
	action, hash          string
	outputs, log, failure []byte
	progress              []byte
}

// frame takes a frame in. It fails with Invalid for a text that is none.
func (s *socket) frame(text []byte) error {
	var f frame
	err := ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error {
		switch string(name) {
		case `"Action"`:
			f.action = textOf(value)
		case `"WorkItemHash"`:
			f.hash = textOf(value)
		case `"Outputs"`:
			f.outputs = value
		case `"Log"`:
			f.log = value
		case `"ErrorMessage"`:
			f.failure = value
		case `"ProgressData"`:
			f.progress = value
		}
		return nil
	})
	if err != nil {
		return ports.Wrap(ports.Invalid, "frame", shallow(err))
	}
	switch f.action {
	case "BeaconRegister":
		return s.register(text)
	case "BeaconHeartbeat":
		s.speak(func(*beacon, time.Time) {})
	case "WorkComplete", "WorkError":
		answer, err := f.answer()
		if err != nil {
			return err
		}
		s.speak(func(b *beacon, now time.Time) { s.hub.report(f.hash, b.name, answer, now) })
	case "WorkProgress":
		s.speak(func(b *beacon, now time.Time) { s.hub.progress(f.hash, b.name, f.progress, now) })
	case "WorkResultUpload":
		s.uploads = f.hash
	case "Deregister":
		s.speak(func(b *beacon, now time.Time) {
			s.hub.goodbye(b, s.id, now)
			s.put(outgoing{text: []byte(`{"EventType":"Deregistered"}`)})
		})
	case "Subscribe", "QueueSubscribe":
		s.put(outgoing{text: refusedFrame(ports.Errorf(ports.Unimplemented, "", "this hub has no event streams; see GET /Beacon/Queue"))})
	}
	return nil // what is unknown is passed over, as the stock hub does
}

// shallow gives the fault of a text that is nested too deeply our limit instead of that of records.
func shallow(err error) error {
	if ports.AsError(err).Limit != ports.MaxDepth {
		return err
	}
	return &ports.Error{Code: ports.Invalid, Message: "is nested too deeply", Limit: maxFrameDepth, Size: maxFrameDepth + 1}
}

// speak does something in the name of the beacon that registered over the socket, if one did. Every frame of it is a sign of
// life.
func (s *socket) speak(do func(b *beacon, now time.Time)) {
	s.hub.step(func(now time.Time) {
		if b := s.hub.registry.byConn[s.id]; b != nil {
			s.hub.alive(b, s.id, false, now)
			do(b, now)
		}
	})
}

// register takes a registration in, or rejects it.
func (s *socket) register(text []byte) error {
	r, err := parseRegistration(text)
	if err == nil && int64(len(text)) > s.hub.limits.Small {
		err = ports.OverLimit("BeaconRegister", "bytes", s.hub.limits.Small, int64(len(text)))
	}
	if err == nil {
		err = s.hub.access.lets(s.who, r)
	}
	if err == nil {
		s.hub.step(func(now time.Time) {
			if s.ctx.Err() != nil || s.hub.closed {
				return
			}
			err = s.hub.join(r, s.id, s.who.sessionID, now, func(b *beacon) {
				s.put(outgoing{text: newObject(200).str("EventType", "BeaconRegistered").str("BeaconID", b.id).done()})
			})
		})
	}
	if err == nil {
		s.hub.access.isNow(s.who, r.name, s.hub.clock())
	} else {
		s.hub.warn(printable(r.name), "a beacon was rejected", "beacon", printable(r.name), "reason", err)
		s.put(outgoing{text: newObject(200).str("EventType", "BeaconRejected").str("Reason", err.Error()).str("Code", string(ports.CodeOf(err))).done()})
		s.closeWith(rejected)
	}
	return nil
}

// upload refuses a file: the hub has no staging folders, and keeps no files.
func (s *socket) upload() {
	if !s.shut {
		s.put(outgoing{text: newObject(200).str("Action", "WorkResultUploadAck").str("WorkItemHash", s.uploads).boolean("Success", false).
			str("Reason", errNoFiles.Error()).done()})
		s.uploads = ""
	}
}

var errNoFiles = ports.Errorf(ports.NotFound, "", "this hub keeps no files; give the result in Outputs")

// answer is a report as the hub keeps it.
func (f *frame) answer() (ports.WorkAnswer, error) {
	if f.hash == "" {
		return ports.WorkAnswer{}, ports.InField(ports.Invalid, "WorkItemHash", "is missing")
	}
	return answerOf(f.action == "WorkError", f.outputs, f.failure, f.log), nil
}

// answerOf makes an answer of a report's members. They are read as the stock hub reads them: Outputs that say nothing are none,
// and all others are as they came.
func answerOf(failed bool, outputs, failure, log []byte) ports.WorkAnswer {
	a := ports.WorkAnswer{Log: logOf(log)}
	switch {
	case failed:
		if a.Failure = textOf(failure); a.Failure == "" {
			a.Failure = "the beacon failed without saying why"
		}
	case falsy(outputs):
		a.Outputs = []byte("{}")
	default:
		a.Outputs = outputs
	}
	return a
}

// falsy says whether a value counts as none where the stock hub writes a default behind "||".
func falsy(value []byte) bool {
	switch string(value) {
	case "", "null", "false", `""`:
		return true
	}
	number, err := strconv.ParseFloat(string(value), 64)
	return err == nil && number == 0
}

// onlyObject is an answer for those who were promised an object (ports.WorkAnswer).
func onlyObject(a ports.WorkAnswer) ports.WorkAnswer {
	if len(a.Outputs) > 0 && a.Outputs[0] != '{' {
		a.Outputs, a.Failure = nil, "the beacon's Outputs are no object"
	}
	return a
}

// maxLog is how many lines of a report's log are kept.
const maxLog = 10_000

func logOf(list []byte) (lines []string) {
	if len(list) == 0 || list[0] != '[' {
		return nil
	}
	_ = ports.ScanItems(list, func(item []byte) { // it was checked with its frame
		switch {
		case len(lines) >= maxLog:
		case item[0] == '"':
			lines = append(lines, textOf(item))
		default:
			lines = append(lines, string(item))
		}
	})
	return lines
}

// salvage ends the work that a refused frame was a report about, if that can be made out: its caller should not wait for a
// report that cannot come in.
func (s *socket) salvage(text []byte, why error) {
	if len(text) > 2*glance {
		text = append(bytes.Clone(text[:glance]), text[len(text)-glance:]...)
	}
	if !bytes.Contains(text, []byte(`"WorkComplete"`)) && !bytes.Contains(text, []byte(`"WorkError"`)) {
		return
	}
	_, after, found := bytes.Cut(text, []byte(`"WorkItemHash":`))
	after = bytes.TrimLeft(after, " \t\r\n")
	if !found || len(after) == 0 || after[0] != '"' {
		return
	}
	end := bytes.IndexByte(after[1:], '"')
	if end < 0 {
		return
	}
	hash := textOf(after[:end+2])
	s.speak(func(b *beacon, now time.Time) {
		s.hub.report(hash, b.name, ports.WorkAnswer{Failure: "the beacon's report was refused: " + why.Error()}, now)
	})
}

// refusedFrame tells a beacon that a frame of it did not count.
func refusedFrame(err error) []byte {
	e := ports.AsError(err)
	o := newObject(200).str("EventType", "FrameRefused").str("Code", string(e.Code)).str("Reason", e.Error())
	if e.Limit != 0 {
		o.number("Limit", e.Limit).number("Size", e.Size)
	}
	return o.done()
}

// printable cuts a peer's text for a message.
func printable(text string) string {
	if len(text) > 64 {
		text = text[:64] + "..."
	}
	return string(bytes.ToValidUTF8([]byte(text), []byte("?")))
}
