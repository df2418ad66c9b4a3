package mesh

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"holdfast/core"
	"holdfast/ports"
)

// The stock reads of history (wire contract H.4, H.5), answered from ours.

// Their limits.
const (
	usualQueue   = 200
	maxQueue     = 5000
	queueHistory = 500
	eventLimit   = 500
	maxManifests = 1000
	maxHashes    = 256
)

// liveWorks lists the works that are not done.
func (h *Hub) liveWorks(c *call) {
	send(c.w, http.StatusOK, jsonList(h.liveItems("", maxQueue)))
}

// liveItems are the works of a bucket, "" for all, in the order in which they came.
func (h *Hub) liveItems(bucket string, limit int) (items [][]byte) {
	h.look(func() {
		for _, w := range ordered(h.works.live, false) {
			if len(items) == limit {
				return
			}
			if bucket == "" || bucket == bucketOf(w) {
				items = append(items, h.liveItem(w))
			}
		}
	})
	return items
}

func bucketOf(w *work) string {
	if w.state == sent || w.state == lingering {
		return "InProgress"
	}
	return "Upcoming"
}

// queue is what is underway, counted and listed, with history when it is asked for.
func (h *Hub) queue(c *call) {
	query := c.r.URL.Query()
	limit := usualQueue
	if n, err := strconv.Atoi(query.Get("limit")); err == nil && n > 0 {
		limit = min(n, maxQueue)
	}
	items := h.liveItems(query.Get("bucket"), limit)
	history, cut := []byte(nil), false
	if query.Get("include") == "history" && h.core != nil {
		history, cut = h.newest(c.r.Context(), queueHistory)
	}
	o := newObject(len(history)+1000).raw("Summary", h.summary()).raw("Items", jsonList(items)).raw("History", history)
	if cut {
		o.boolean("HistoryTruncated", true)
	}
	send(c.w, http.StatusOK, o.done())
}

// newest are the newest items of the history; nil when it cannot be read. Those of the first page are whole. A page ends at a
// size too, and one large result may fill it; the rest come without Settings and Result, so that they come at all. cut says
// that some could not be read.
func (h *Hub) newest(ctx context.Context, most int) (list []byte, cut bool) {
	var items [][]byte
	q := ports.ItemQuery{Desc: true, Limit: most, Bodies: true}
	for q.Limit > 0 {
		a := h.core.Items(ctx, q)
		if !a.Success() {
			if items == nil {
				return nil, false
			}
			return jsonList(items), true
		}
		_ = ports.ScanItems(listOf(a), func(item []byte) { items = append(items, item) }) // it comes from the core
		var err error
		if q.After, err = ports.ParseCursor(a.Cursor); err != nil || q.After == nil {
			break
		}
		q.Limit, q.Bodies = most-len(items), false
	}
	return jsonList(items), false
}

// summary counts what is underway.
func (h *Hub) summary() []byte {
	type pair struct{ capability, action string }
	var queued, running int64
	var order []pair
	byPair := map[pair]*[2]int64{}
	h.look(func() {
		for _, w := range ordered(h.works.live, false) {
			p := pair{w.Capability, w.Action}
			n := byPair[p]
			if n == nil {
				n = new([2]int64)
				byPair[p] = n
				order = append(order, p)
			}
			if bucketOf(w) == "InProgress" {
				running++
				n[1]++
			} else {
				queued++
				n[0]++
			}
		}
	})
	var list [][]byte
	for _, p := range order {
		list = append(list, newObject(150).str("Capability", p.capability).str("Action", p.action).number("Queued", byPair[p][0]).
			number("Running", byPair[p][1]).number("Stalled", 0).done())
	}
	buckets := newObject(100).number("Upcoming", queued).number("InProgress", running).number("Stalled", 0).number("Completed", 0).number("Errored", 0).done()
	return newObject(300).at("At", h.clock()).raw("Buckets", buckets).raw("ByCapability", jsonList(list)).done()
}

// listOf is the list of an answer; an empty one for none.
func listOf(a core.Answer) []byte {
	if len(a.Value) == 0 {
		return []byte("[]")
	}
	return a.Value
}

// events are those of one work item.
func (h *Hub) events(c *call) {
	if h.core == nil {
		refuse(c.w, errNoHistory)
		return
	}
	item := h.core.Item(c.r.Context(), c.key)
	if !item.Success() {
		refuse(c.w, missing(item, "no such work item"))
		return
	}
	a := h.core.Events(c.r.Context(), ports.EventQuery{Key: c.key, Limit: eventLimit, Bodies: true})
	if !a.Success() {
		refuse(c.w, missing(a, "no such work item"))
		return
	}
	o := newObject(len(a.Value)+200).str("WorkItemHash", c.key).raw("Events", listOf(a))
	if a.Stale || item.Stale {
		o.boolean("Stale", true)
	}
	send(c.w, http.StatusOK, o.done())
}

var errNoHistory = ports.Errorf(ports.Unavailable, "", "this hub has no history")

// missing is the error of a read that gave nothing.
func missing(a core.Answer, what string) error {
	if a.Situation == core.NotFound {
		return ports.Errorf(ports.NotFound, "", "%s", what)
	}
	if a.Err != nil {
		return a.Err
	}
	return ports.Errorf(ports.Unavailable, "", "no backend can answer now")
}

// manifests lists runs, or gives those of ?hashes=.
func (h *Hub) manifests(c *call) {
	if h.core == nil {
		send(c.w, http.StatusOK, []byte("[]"))
		return
	}
	if c.r.URL.Query().Has("hashes") {
		h.wireManifests(c, words(c.r.URL.Query().Get("hashes")))
		return
	}
	a := h.core.Manifests(c.r.Context(), ports.ManifestQuery{Desc: true, Limit: maxManifests})
	if !a.Success() { // as the stock hub: what it has itself, which is nothing
		send(c.w, http.StatusOK, []byte("[]"))
		return
	}
	send(c.w, http.StatusOK, listOf(a))
}

func (h *Hub) manifestBatch(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	var hashes []string
	listed := false
	_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error { // body checked it
		if string(name) == `"Hashes"` && value[0] == '[' {
			listed = true
			return ports.ScanItems(value, func(item []byte) { hashes = append(hashes, textOf(item)) })
		}
		return nil
	})
	done()
	if !listed {
		refuse(c.w, ports.InField(ports.Invalid, "Hashes", "is missing or no list"))
		return
	}
	h.wireManifests(c, hashes)
}

// wireManifests answers with many manifests. They are read and written one after the other: each may be large.
func (h *Hub) wireManifests(c *call, hashes []string) {
	if len(hashes) > maxHashes {
		refuse(c.w, &refusal{http.StatusBadRequest, ports.OverLimit("Hashes", "entries", maxHashes, int64(len(hashes)))})
		return
	}
	if h.core == nil {
		refuse(c.w, errNoHistory)
		return
	}
	deadlines := http.NewResponseController(c.w)
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Header().Set("Cache-Control", "no-store")
	write := func(text []byte) bool {
		_ = deadlines.SetWriteDeadline(later(len(text)))
		_, err := c.w.Write(text)
		return err == nil
	}
	open, between := write([]byte(`{"Manifests":[`)), false
	var absent []string
	for _, hash := range hashes {
		if !open {
			return
		}
		a := h.core.Manifest(c.r.Context(), hash)
		if !a.Success() || len(a.Value) == 0 {
			absent = append(absent, hash)
			continue
		}
		if between {
			write([]byte{','})
		}
		between = true
		open = write(wireManifest(a.Value))
	}
	write(append(appendStrings([]byte(`],"NotFound":`), absent), '}'))
}

func (h *Hub) manifest(c *call) {
	if h.core == nil {
		refuse(c.w, errNoHistory)
		return
	}
	a := h.core.Manifest(c.r.Context(), c.key)
	if !a.Success() || len(a.Value) == 0 {
		refuse(c.w, missing(a, "no such run"))
		return
	}
	send(c.w, http.StatusOK, wireManifest(a.Value))
}

// wireMembers are the members of a manifest on the wire, with what stands for a missing one.
var wireMembers = []struct{ name, empty string }{
	{"Hash", `""`}, {"OperationHash", `""`}, {"OperationName", `""`}, {"Status", `""`}, {"RunMode", `""`}, {"Live", "false"},
	{"StartTime", "null"}, {"StopTime", "null"}, {"ElapsedMs", "null"},
	{"Output", "{}"}, {"GlobalState", "{}"}, {"OperationState", "{}"}, {"TaskOutputs", "{}"}, {"TaskManifests", "{}"}, {"WaitingTasks", "{}"},
	{"TimingSummary", "null"}, {"EventLog", "[]"}, {"Errors", "[]"}, {"Log", "[]"},
}

// wireManifest strips a manifest to the members of the wire.
func wireManifest(manifest []byte) []byte {
	given := map[string][]byte{}
	_ = ports.ScanObject(manifest, maxFrameDepth, func(name, value []byte) error { // it comes from a store
		if plain, _ := ports.Unquote(name); !bytes.Equal(value, []byte("null")) {
			given[plain] = value
		}
		return nil
	})
	o := newObject(len(manifest) + 300)
	for _, m := range wireMembers {
		value := given[m.name]
		if value == nil {
			value = []byte(m.empty)
		}
		o.raw(m.name, value)
	}
	return o.done()
}
