package mesh

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

type flag = atomic.Bool

// refusal is an error that says its own HTTP status; all others get that of their code.
type refusal struct {
	status int
	err    *ports.Error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse answers a request that is not served. Every answer is JSON, or stock clients take it for a broken one.
func refuse(w http.ResponseWriter, err error) {
	e := ports.AsError(err)
	status := core.HTTPStatus(e.Code)
	if own, ok := errors.AsType[*refusal](err); ok {
		status = own.status
	}
	o := newObject(300).str("Error", e.Error()).str("Code", string(e.Code))
	switch status {
	case http.StatusUnauthorized:
		o.boolean("LoggedIn", false)
	case http.StatusBadRequest:
		o.str("code", "InvalidContent").str("message", e.Error())
	case http.StatusInsufficientStorage: // too much waits, but nothing is lost: try again
		status = http.StatusServiceUnavailable
	}
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	if e.Limit != 0 {
		o.number("Limit", e.Limit).number("Size", e.Size)
	}
	send(w, status, o.done())
}

func send(w http.ResponseWriter, status int, body []byte) {
	_ = http.NewResponseController(w).SetWriteDeadline(later(len(body))) // a test's recorder has none
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that went away is not told anything
}

// later is until when a peer may take so many bytes.
func later(bytes int) time.Time {
	return time.Now().Add(answerTimeout + time.Duration(bytes)*time.Second/slowestOut)
}

// beaconRecord is a beacon as tools see it (wire contract A.7).
func (h *Hub) beaconRecord(b *beacon) []byte {
	held := h.works.holds(b.name)
	o := newObject(int(b.size)+600).str("BeaconID", b.id).str("Name", b.name).orNull("SessionID", b.sessionID).strs("Capabilities", b.capabilities).
		str("Status", h.statusOf(b, len(held))).str("LastHeartbeat", isoTime(b.seenAt)).strs("CurrentWorkItems", held).
		number("MaxConcurrent", int64(b.maxConcurrent))
	for _, name := range []string{"Tags", "Contexts", "BindAddresses"} {
		o.orEmpty(name, b.opaque[name])
	}
	o.orNull("HostID", b.hostID).orEmpty("SharedMounts", b.opaque["SharedMounts"]).str("RegisteredAt", isoTime(b.registeredAt))
	return o.lingering(h.works.berths[b.name].lingering()).done()
}

// lingering says how many works nobody waits for any more, where there are some. The stock hub has no such member.
func (o *object) lingering(works int) *object {
	if works > 0 {
		o.number("LingeringWorkItems", int64(works))
	}
	return o
}

func (h *Hub) statusOf(b *beacon, held int) string {
	switch {
	case !b.online:
		return "Offline"
	case held >= h.slots(b) || h.works.mutes(b.name):
		return "Busy"
	}
	return "Online"
}

// liveItem is a work that is not done as tools see it: what is known of the item of D.1, without its settings, which may hold
// anything and are no use in a list.
func (h *Hub) liveItem(w *work) []byte {
	status, bucket, beaconID := w.firstStatus(), "Upcoming", ""
	if w.state == sent || w.state == lingering {
		status, bucket = "Running", "InProgress"
	}
	if w.berth != nil {
		if b := h.registry.byName[w.berth.name]; b != nil {
			beaconID = b.id
		}
	}
	last := w.enqueuedAt
	for _, t := range []time.Time{w.sentAt, w.heardAt} {
		if t.After(last) {
			last = t
		}
	}
	o := newObject(600).str("WorkItemHash", w.Hash).str("RunHash", "").str("RunID", "").str("NodeHash", "").str("OperationHash", "").
		str("Capability", w.Capability).str("Action", w.Action).str("AffinityKey", w.affinity).orNull("AssignedBeaconID", beaconID).
		str("Status", status).number("TimeoutMs", w.timeout.Milliseconds()).at("CreatedAt", w.enqueuedAt).at("EnqueuedAt", w.enqueuedAt).
		at("DispatchedAt", w.sentAt).at("StartedAt", w.sentAt).at("LastEventAt", last).number("Priority", 0)
	if len(w.progress) > 0 {
		o.raw("Progress", w.progress)
	}
	return o.str("Bucket", bucket).done()
}

// catalog is what all beacons say that they can do, by capability and action.
func catalog(list []beaconSchemas) (entries []catalogEntry) {
	at := map[string]int{}
	for _, b := range list {
		_ = ports.ScanItems(b.schemas, func(item []byte) { // it was checked when it came
			if item[0] != '{' {
				return
			}
			e := catalogEntry{schema: []byte("[]"), available: b.online}
			_ = ports.ScanObject(item, maxFrameDepth, func(name, value []byte) error {
				switch string(name) {
				case `"Capability"`:
					e.capability = textOf(value)
				case `"Action"`:
					e.action = textOf(value)
				case `"Description"`:
					e.description = textOf(value)
				case `"SettingsSchema"`:
					e.schema = value
				}
				return nil
			})
			key := e.capability + ":" + e.action
			if i, known := at[key]; known {
				entries[i].sources = append(entries[i].sources, b.name)
				entries[i].available = entries[i].available || b.online
				return
			}
			e.sources = []string{b.name}
			at[key] = len(entries)
			entries = append(entries, e)
		})
	}
	return entries
}

type beaconSchemas struct {
	name    string
	online  bool
	schemas []byte
}

type catalogEntry struct {
	capability, action, description string
	schema                          []byte
	sources                         []string
	available                       bool
}

func (e *catalogEntry) text(availability bool) []byte {
	o := newObject(len(e.schema)+200).str("Capability", e.capability).str("Action", e.action).str("Description", e.description).raw("SettingsSchema", e.schema)
	if availability {
		o.boolean("Available", e.available)
	}
	return o.strs("SourceBeacons", e.sources).done()
}

// words splits a list of a query.
func words(list string) (found []string) {
	for word := range strings.SplitSeq(list, ",") {
		if word = strings.TrimSpace(word); word != "" {
			found = append(found, word)
		}
	}
	return found
}
