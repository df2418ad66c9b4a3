package core

import (
	"bytes"

	"holdfast/ports"
)

// Call is one action as it came in: the action's name and its Settings, a JSON object.
type Call struct {
	Action   ports.Action
	Settings []byte // the Call owns it; nothing may write into it afterwards
	Source   Source
	Cursor   string // of a read: where the page begins
	Bodies   bool   // of a list: with the opaque members
	Desc     bool   // of a list in its own order: newest first

	seen seen
}

// seen is what ParseCall saw of a write's Settings while it passed them, so that nobody has to look again. Only what is in
// order is kept: anything odd is looked at again where it is refused.
type seen struct {
	write  ports.Action // whose Settings they are; "" for none
	given  settings
	record *ports.Record
}

// Source says where a call came from: what stamps its records, and what makes a repeat recognisable.
type Source struct {
	Actor       string  // token, user or hub
	Origin      string  // one of the ports.Origin constants
	Idempotency string  // the request's Idempotency-Key, "" for none
	Line        int     // of the request, from 1
	Stream      *Stream // of an ingested file; nil elsewhere
	Import      bool    // the records are history that is sent again

	// Of a write of a hub that we joined: its name, the WorkItemHash of the work that carried the write, and the stamp in that.
	Hub   string
	Work  string
	Stamp ports.Stamp
}

// ParseCall reads {Action, Settings}. Unknown members are not an error: callers add their own. It fails with Invalid or
// TooLarge.
func ParseCall(line []byte) (Call, error) {
	if len(line) > ports.MaxLineBytes {
		return Call{}, ports.OverLimit("line", "bytes", ports.MaxLineBytes, int64(len(line)))
	}
	var call Call
	var action []byte
	enter := func(level int, name []byte) bool {
		if level == 1 {
			return string(name) == `"Settings"` && call.seen.begin(action)
		}
		return call.seen.enter(name)
	}
	err := ports.ScanNested(line, ports.MaxDepth+2, enter, func(level int, name, value []byte) error {
		switch {
		case level > 1:
			call.seen.member(level, name, value)
		case string(name) == `"Action"`:
			return once("Action", &action, value)
		case string(name) == `"Settings"`:
			return once("Settings", &call.Settings, value)
		}
		return nil
	})
	switch {
	case err != nil:
		return Call{}, ports.Wrap(ports.Invalid, "call", located(line, err))
	case len(action) < 2 || action[0] != '"':
		return Call{}, ports.InField(ports.Invalid, "Action", "is missing or no text; send {\"Action\": ..., \"Settings\": {...}}")
	case len(call.Settings) == 0 || call.Settings[0] != '{':
		return Call{}, ports.InField(ports.Invalid, "Settings", "is missing or no object; send {\"Action\": ..., \"Settings\": {...}}")
	}
	text, _ := ports.Unquote(action)
	call.Action = ports.Action(text)
	if call.Action.Family() == "" {
		return Call{}, ports.InField(ports.Invalid, "Action", "%q is not an action; the actions are %s", bounded(text), actionNames())
	}
	return call, nil
}

// located names the record that is nested too deeply; every other fault says itself where it is.
func located(line []byte, err error) error {
	e := *ports.AsError(err)
	if e.Limit != ports.MaxDepth || e.Field != "" {
		return err
	}
	const bearable = 100 * ports.MaxDepth // deeper ones are not worth the stack
	var action ports.Action
	var given []byte
	_ = ports.ScanObject(line, bearable, func(name, value []byte) error { // what could be read is enough
		switch {
		case string(name) == `"Action"` && value[0] == '"':
			text, _ := ports.Unquote(value)
			action = ports.Action(text)
		case string(name) == `"Settings"`:
			given = value
		}
		return nil
	})
	_ = ports.ScanObject(given, bearable, func(name, value []byte) error {
		if action.IsWrite() && string(name[1:len(name)-1]) == recordMember(action) && ports.ScanObject(value, ports.MaxDepth, nil) != nil {
			e.Field = recordMember(action)
		}
		return nil
	})
	return &e
}

// once takes a member that may stand only once: of two nobody could tell which one counts.
func once(name string, into *[]byte, value []byte) error {
	if *into != nil {
		return ports.InField(ports.Invalid, name, "stands twice; give each member once")
	}
	*into = value
	return nil
}

// begin says whether Settings are looked into: when the action before them is a write.
func (s *seen) begin(action []byte) bool {
	for _, write := range ports.Writes {
		if len(action) == len(write)+2 && string(action[1:len(action)-1]) == string(write) {
			*s = seen{write: write}
			return true
		}
	}
	return false
}

// enter says whether a member of Settings is the record.
func (s *seen) enter(name []byte) bool {
	if s.write == "" || s.record != nil || string(name[1:len(name)-1]) != recordMember(s.write) {
		return false
	}
	s.record = ports.NewRecord(tableOf(s.write))
	return true
}

// member takes a member of Settings or of the record.
func (s *seen) member(level int, name, value []byte) {
	if s.write == "" {
		return
	}
	var odd error
	if level == 2 {
		odd = s.given.take(s.write, name, value)
	} else {
		odd = s.record.Add(name, value)
	}
	if odd != nil {
		*s = seen{}
	}
}

// bounded cuts a caller's text for an error message.
func bounded(text string) string {
	if len(text) <= 64 {
		return text
	}
	return string(bytes.ToValidUTF8([]byte(text[:64]), nil)) + "..."
}

func actionNames() string {
	var b []byte
	for _, list := range [][]ports.Action{ports.Writes, ports.Reads} {
		for _, a := range list {
			if len(b) > 0 {
				b = append(b, ", "...)
			}
			b = append(b, a...)
		}
	}
	return string(b)
}
