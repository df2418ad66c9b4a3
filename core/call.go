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
}

// Source says where a call came from: what stamps its records, and what makes a repeat recognisable.
type Source struct {
	Actor       string  // token, user or hub
	Origin      string  // one of the ports.Origin constants
	Idempotency string  // the request's Idempotency-Key, "" for none
	Line        int     // of the request, from 1
	Stream      *Stream // of an ingested file; nil elsewhere
	Import      bool    // the records are history that is sent again
}

// ParseCall reads {Action, Settings}. Unknown members are not an error: callers add their own. It fails with Invalid or
// TooLarge.
func ParseCall(line []byte) (Call, error) {
	if len(line) > ports.MaxLineBytes {
		return Call{}, ports.OverLimit("line", "bytes", ports.MaxLineBytes, int64(len(line)))
	}
	var call Call
	var action []byte
	err := ports.ScanObject(line, ports.MaxDepth+2, func(name, value []byte) error {
		switch string(name) {
		case `"Action"`:
			action = value
		case `"Settings"`:
			call.Settings = value
		}
		return nil
	})
	switch {
	case err != nil:
		return Call{}, ports.Wrap(ports.Invalid, "call", err)
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
