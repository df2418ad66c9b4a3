package mesh

import (
	"bytes"
	"encoding/json"
	"strconv"

	"holdfast/ports"
)

// What a beacon says of itself when it registers (wire contract A.5), over either transport.

// The bounds of one registration.
const (
	maxName         = 256 // bytes, of a beacon and of a capability
	maxCapabilities = 1000
	maxFrameDepth   = 4000 // what a report may nest; the Door has its own limit for what is recorded
)

// registration is one beacon's word. Its opaque members are kept as they came.
type registration struct {
	name          string
	capabilities  []string
	maxConcurrent int
	hostID        string
	opaque        map[string]json.RawMessage // Tags, Contexts, BindAddresses, SharedMounts, ActionSchemas, Operations
	tags          map[string]json.RawMessage // of the opaque Tags
	joinSecret    string
	size          int64
}

// opaqueMembers are kept as they came, if they are of this kind.
var opaqueMembers = map[string]byte{
	"Tags": '{', "Contexts": '{', "BindAddresses": '[', "SharedMounts": '[', "ActionSchemas": '[', "Operations": '[',
}

// parseRegistration reads a registration. It copies what it keeps. It fails with Invalid.
func parseRegistration(text []byte) (registration, error) {
	r := registration{maxConcurrent: 1, opaque: map[string]json.RawMessage{}}
	named, offered := false, false
	err := ports.ScanObject(text, maxFrameDepth, func(quoted, value []byte) error {
		name, _ := ports.Unquote(quoted)
		switch {
		case opaqueMembers[name] != 0:
			if value[0] == opaqueMembers[name] {
				r.opaque[name] = bytes.Clone(value)
				r.size += int64(len(value))
			}
		case name == "Name":
			r.name, named = textOf(value), true
		case name == "HostID":
			r.hostID = textOf(value)
		case name == "JoinSecret":
			r.joinSecret = textOf(value)
		case name == "MaxConcurrent":
			r.maxConcurrent = wholeNumber(value, 1)
		case name == "Capabilities" && value[0] == '[':
			offered = true
			return r.offer(value)
		}
		return nil
	})
	switch {
	case err != nil:
		return r, ports.Wrap(ports.Invalid, "register", err)
	case !named || r.name == "":
		return r, ports.InField(ports.Invalid, "Name", "is missing; a beacon is known by its name")
	case len(r.name) > maxName || bytes.ContainsFunc([]byte(r.name), func(c rune) bool { return c < ' ' || c == 0x7f }):
		return r, ports.InField(ports.Invalid, "Name", "is longer than %d bytes or holds control characters", maxName)
	case !offered:
		return r, ports.InField(ports.Invalid, "Capabilities", "is missing; give a list of texts")
	case len(r.hostID) > maxName:
		return r, ports.InField(ports.Invalid, "HostID", "is longer than %d bytes", maxName)
	}
	_ = json.Unmarshal(r.opaque["Tags"], &r.tags) // they were checked; none are none
	r.size += int64(len(r.name) + len(r.hostID) + len(r.opaque["Tags"]) + 512)
	return r, nil
}

// offer reads the list of capabilities.
func (r *registration) offer(list []byte) error {
	seen := map[string]bool{}
	var odd error
	err := ports.ScanItems(list, func(item []byte) {
		name := textOf(item)
		switch {
		case name == "" || len(name) > maxName:
			odd = ports.InField(ports.Invalid, "Capabilities", "holds something else than texts of at most %d bytes", maxName)
		case len(r.capabilities) == maxCapabilities:
			odd = ports.OverLimit("Capabilities", "entries", maxCapabilities, maxCapabilities+1)
		case !seen[name]:
			seen[name] = true
			r.capabilities = append(r.capabilities, name)
			r.size += int64(len(name) + 16)
		}
	})
	if err != nil {
		return err
	}
	return odd
}

// textOf is the text of a JSON string; "" for any other value.
func textOf(value []byte) string {
	if len(value) == 0 || value[0] != '"' {
		return ""
	}
	text, _ := ports.Unquote(value)
	return text
}

// wholeNumber is a JSON number cut to a whole one, or the usual one for any other value.
func wholeNumber(value []byte, usual int) int {
	f, err := strconv.ParseFloat(string(value), 64)
	if err != nil || f != f || f > 1<<31 || f < -1<<31 {
		return usual
	}
	return int(f)
}
