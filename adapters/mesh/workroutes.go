package mesh

import (
	"net/http"
	"time"

	"holdfast/ports"
)

// The routes of work for pollers, and for clients whose socket is down (wire contract A.8).

func (h *Hub) poll(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	id := memberText(text, "BeaconID")
	done()
	if id == "" {
		refuse(c.w, ports.InField(ports.Invalid, "BeaconID", "is missing"))
		return
	}
	var w *work
	known := false
	h.step(func(now time.Time) {
		b := h.registry.byID[id]
		if known = c.who.may(b); known && !h.closed {
			h.alive(b, 0, true, now)
			w = h.works.poll(b.name, now)
		}
	})
	switch {
	case !known:
		refuse(c.w, errStranger)
	case w == nil:
		send(c.w, http.StatusOK, []byte(`{"WorkItem":null}`))
	default:
		item := h.itemOf(w)
		send(c.w, http.StatusOK, newObject(len(item)+20).raw("WorkItem", item).done())
	}
}

// memberText is a text member of an object that was checked.
func memberText(text []byte, member string) (found string) {
	_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error {
		if string(name[1:len(name)-1]) == member {
			found = textOf(value)
		}
		return nil
	})
	return found
}

// told reads the members of a report.
func told(text []byte) (f frame) {
	_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error { // it was checked
		switch string(name) {
		case `"WorkItemHash"`:
			f.hash = textOf(value)
		case `"Outputs"`:
			f.outputs = value
		case `"Log"`:
			f.log = value
		case `"ErrorMessage"`:
			f.failure = value
		}
		return nil
	})
	return f
}

// verdictError is a report that changed nothing; nil: it ended its work.
func verdictError(v verdict) error {
	switch v {
	case late:
		return &refusal{http.StatusBadRequest, ports.Errorf(ports.Conflict, "", "this work item is finalized already; the report came too late and changed nothing")}
	case unknown:
		return &refusal{http.StatusBadRequest, ports.Errorf(ports.NotFound, "", "this work item is not known here")}
	}
	return nil
}

func (h *Hub) complete(c *call) { h.finish(c, false, "Completed") }
func (h *Hub) fail(c *call)     { h.finish(c, true, "Failed") }

func (h *Hub) finish(c *call, failed bool, status string) {
	text, done, err := h.body(c, h.limits.Frame)
	if err != nil {
		if ports.CodeOf(err) == ports.TooLarge { // its caller should not wait for a report that cannot come in
			h.step(func(now time.Time) {
				h.report(c.key, c.who.beacon, ports.WorkAnswer{Failure: "the beacon's report was refused: " + err.Error()}, now)
			})
		}
		refuse(c.w, err)
		return
	}
	defer done()
	f := told(text)
	answer := answerOf(failed, f.outputs, f.failure, f.log)
	var v verdict
	h.step(func(now time.Time) { v = h.report(c.key, c.who.beacon, answer, now) })
	if err := verdictError(v); err != nil {
		refuse(c.w, err)
		return
	}
	send(c.w, http.StatusOK, newObject(200).str("Status", status).str("WorkItemHash", c.key).done())
}

func (h *Hub) tellProgress(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	defer done()
	known := false
	h.step(func(now time.Time) { known = h.progress(c.key, c.who.beacon, text, now) })
	if !known {
		refuse(c.w, ports.Errorf(ports.NotFound, "", "this work item is not known here, or does not run"))
		return
	}
	send(c.w, http.StatusOK, newObject(200).boolean("Success", true).str("WorkItemHash", c.key).done())
}

// unbuilt answers what the stock hub has and this one does not: queues that outlive their caller.
func (h *Hub) unbuilt(c *call) {
	c.w.Header().Set("Connection", "close") // its body is not read
	refuse(c.w, ports.Errorf(ports.Unimplemented, "", "this hub keeps no queue that outlives its callers; use POST /Beacon/Work/Dispatch, which waits for the answer"))
}

func (h *Hub) upload(c *call) {
	c.w.Header().Set("Connection", "close") // its body is not read
	refuse(c.w, errNoFiles)
}

// maxBatch is how many entries a batch may have.
const maxBatch = 256

// batch reads the entries of a batch, under either of its names. It refuses the request itself, and then gives no done.
func (h *Hub) batch(c *call, limit int64, alias string) (entries [][]byte, done func()) {
	text, done, err := h.body(c, limit)
	if err == nil {
		var list []byte
		_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error { // body checked it
			if plain := string(name[1 : len(name)-1]); plain == "Items" || plain == alias {
				list = value
			}
			return nil
		})
		if len(list) == 0 || list[0] != '[' {
			err = ports.InField(ports.Invalid, "Items", "is missing or no list")
		} else {
			_ = ports.ScanItems(list, func(item []byte) { entries = append(entries, item) })
			if len(entries) > maxBatch {
				err = ports.OverLimit("Items", "entries", maxBatch, int64(len(entries)))
			}
		}
		if err != nil {
			done()
		}
	}
	if err != nil {
		refuse(c.w, err)
		return nil, nil
	}
	return entries, done
}

// each answers a batch entry by entry.
func each(c *call, entries [][]byte, do func(item []byte) (answer []byte, err error)) {
	var answers, faults [][]byte
	for i, item := range entries {
		var answer []byte
		err := error(ports.Errorf(ports.Invalid, "", "is no object"))
		if item[0] == '{' {
			answer, err = do(item)
		}
		if err != nil {
			faults = append(faults, newObject(200).number("Index", int64(i)).str("Error", err.Error()).done())
			continue
		}
		answers = append(answers, answer)
	}
	send(c.w, http.StatusOK, newObject(200).raw("Items", jsonList(answers)).raw("Errors", jsonList(faults)).done())
}

func (h *Hub) completeBatch(c *call) {
	entries, done := h.batch(c, h.limits.Frame, "Completions")
	if done == nil {
		return
	}
	defer done()
	each(c, entries, func(item []byte) (text []byte, err error) {
		f := told(item)
		answer := answerOf(false, f.outputs, nil, f.log)
		h.step(func(now time.Time) { err = verdictError(h.report(f.hash, c.who.beacon, answer, now)) })
		return newObject(200).str("WorkItemHash", f.hash).str("Status", "Completed").done(), err
	})
}

func (h *Hub) progressBatch(c *call) {
	entries, done := h.batch(c, h.limits.Small, "Progress")
	if done == nil {
		return
	}
	defer done()
	each(c, entries, func(item []byte) (text []byte, err error) {
		hash := told(item).hash
		h.step(func(now time.Time) {
			if !h.progress(hash, c.who.beacon, item, now) {
				err = ports.Errorf(ports.NotFound, "", "this work item is not known here, or does not run")
			}
		})
		return newObject(200).str("WorkItemHash", hash).boolean("Updated", true).done(), err
	})
}
