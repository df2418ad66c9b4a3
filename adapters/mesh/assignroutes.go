package mesh

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"holdfast/core"
	"holdfast/ports"
)

// The routes by which a stock hub is told which databeacon keeps its history, and tells how that stands (wire contract H.1). A beacon is
// named by its id or, as ultravisor-lab does, by its Name; both families go together.

func (h *Hub) assign(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	defer done()
	if h.core == nil {
		refuse(c.w, errNoHistory)
		return
	}
	beacon, connection, err := assignmentOf(text)
	switch {
	case err != nil:
	case beacon == "":
		err = h.core.Unassign(nil)
	default:
		err = h.core.Assign(nil, beacon, connection)
	}
	if err != nil {
		refuse(c.w, err)
		return
	}
	h.log.Info("the databeacon that keeps history is assigned", "beacon", printable(beacon), "connection", connection, "actor", c.who.actor)
	send(c.w, http.StatusOK, persistenceText(newObject(500).boolean("Success", true), h.core.Assignments()))
}

func (h *Hub) persistence(c *call) {
	if h.core == nil {
		refuse(c.w, errNoHistory)
		return
	}
	send(c.w, http.StatusOK, persistenceText(newObject(500), h.core.Assignments()))
}

// assignmentOf reads what shall be assigned; an empty beacon clears.
func assignmentOf(text []byte) (beacon string, connection int64, err error) {
	err = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error {
		value = bytes.TrimSpace(value)
		switch string(name) {
		case `"BeaconID"`:
			beacon = ""
			if string(value) != "null" && json.Unmarshal(value, &beacon) != nil {
				return ports.InField(ports.Invalid, "BeaconID", "is no text; it is the Name of a beacon or its id, null to clear")
			}
		case `"IDBeaconConnection"`:
			connection = connectionOf(value)
		}
		return nil
	})
	return beacon, connection, err
}

// connectionOf is a number, or a text that has one; 0 for anything else.
func connectionOf(value []byte) int64 {
	text := string(value)
	if strings.HasPrefix(text, `"`) {
		text = strings.TrimSpace(textOf(value))
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n == float64(int64(n)) {
		return int64(n)
	}
	return 0
}

// persistenceText adds how it stands with each family, in the stock hub's words.
func persistenceText(o *object, list []core.AssignmentStatus) []byte {
	for i := range list {
		s := &list[i]
		fault := ""
		if s.State == "error" {
			fault = strings.Trim(s.Detail+": "+s.Remedy, ": ")
		}
		o.raw(string(s.Family), newObject(300).str("State", s.State).orNull("AssignedBeaconID", s.BeaconID).
			number("IDBeaconConnection", s.IDBeaconConnection).orNull("LastError", fault).orNull("BootstrappedAt", s.BootstrappedAt).
			orNull("AssignedAt", s.AssignedAt).done())
	}
	return o.done()
}
