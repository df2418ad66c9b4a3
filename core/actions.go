package core

import (
	"context"
	"strconv"
	"strings"

	"holdfast/ports"
)

// The reads as actions, with the habits of the bridges (wire contract C and E.3): filters that hold exactly, limits that are
// clamped, an order as text.

// page limits of the read actions: what holds without a Limit, and the most.
var actionLimits = map[ports.Action]struct{ usual, most int }{
	ports.ListWorkItems: {500, 5000},
	ports.GetEvents:     {500, 5000},
	ports.ListAttempts:  {500, 5000},
	ports.ListManifests: {100, 1000},
}

// payloads are the payload keys of the read actions, and whether they hold a list.
var payloads = map[ports.Action]struct {
	name string
	list bool
}{
	ports.GetWorkItemByHash: {"WorkItem", false},
	ports.ListWorkItems:     {"WorkItems", true},
	ports.GetEvents:         {"Events", true},
	ports.ListAttempts:      {"Attempts", true},
	ports.GetManifest:       {"Manifest", false},
	ports.ListManifests:     {"Manifests", true},
}

// readAction carries out a read action.
func (h *Host) readAction(ctx context.Context, call *Call) Answer {
	q, err := parseRead(call)
	if err != nil {
		a := refusal(err)
		p := payloads[call.Action]
		a.Payload, a.List = p.name, p.list
		return a
	}
	switch call.Action {
	case ports.GetWorkItemByHash:
		return h.Item(ctx, q.key)
	case ports.ListWorkItems:
		a := h.Items(ctx, ports.ItemQuery{Filter: q.filter, OrderBy: q.orderBy, Desc: q.desc, After: q.after, Limit: q.limit, Bodies: true})
		if q.orderBy != "" {
			a.Cursor = ""
		}
		return a
	case ports.GetEvents:
		return h.Events(ctx, ports.EventQuery{Key: q.key, After: q.after, Limit: q.limit, Bodies: true})
	case ports.ListAttempts:
		return h.Attempts(ctx, ports.AttemptQuery{Key: q.key, After: q.after, Limit: q.limit})
	case ports.GetManifest:
		return h.Manifest(ctx, q.key)
	}
	return h.Manifests(ctx, ports.ManifestQuery{
		OperationHash: q.filter.OperationHash, Status: q.filter.Status, After: q.after, Limit: q.limit, Bodies: true,
	})
}

// readQuery is what a read action asks for.
type readQuery struct {
	key     string
	filter  ports.ItemFilter
	orderBy string
	desc    bool
	after   *ports.Cursor
	limit   int
}

func parseRead(call *Call) (q readQuery, err error) {
	if q.after, err = ports.ParseCursor(call.Cursor); err != nil {
		return q, err
	}
	var key, limit []byte
	keyField := "WorkItemHash"
	if call.Action == ports.GetManifest {
		keyField = "RunHash"
	}
	err = ports.ScanObject(call.Settings, ports.MaxDepth+1, func(name, value []byte) error {
		switch plain, _ := ports.Unquote(name); plain {
		case keyField:
			key = value
		case "Limit":
			limit = value
		case "Cursor":
			return q.readCursor(value)
		case "Filter":
			if value[0] == '{' {
				return ports.ScanObject(value, ports.MaxDepth, func(name, value []byte) error { return q.filterBy(name, value, &limit) })
			}
		}
		return nil
	})
	if err != nil {
		return q, err
	}
	if _, list := actionLimits[call.Action]; !list || call.Action == ports.GetEvents || call.Action == ports.ListAttempts {
		if q.key, err = keyOf(keyField, key); err != nil {
			return q, err
		}
	}
	q.limit, err = clamp(call.Action, limit)
	return q, err
}

func (q *readQuery) readCursor(value []byte) (err error) {
	if value[0] == '"' {
		token, _ := ports.Unquote(value)
		q.after, err = ports.ParseCursor(token)
	}
	return err
}

// filterBy takes one member of a Filter; unknown ones are passed over, as the bridges do.
func (q *readQuery) filterBy(name, value []byte, limit *[]byte) error {
	text := ""
	if value[0] == '"' {
		text, _ = ports.Unquote(value)
	}
	switch plain, _ := ports.Unquote(name); plain {
	case "Status":
		return q.statuses(value)
	case "AssignedBeaconID":
		q.filter.AssignedBeaconID = text
	case "RunID":
		q.filter.RunID = text
	case "Capability":
		q.filter.Capability = text
	case "OperationHash":
		q.filter.OperationHash = text
	case "Limit":
		*limit = value
	case "Cursor":
		return q.readCursor(value)
	case "OrderBy":
		q.order(text)
	}
	return nil
}

// statuses reads a status or a list of them.
func (q *readQuery) statuses(value []byte) error {
	switch value[0] {
	case '"':
		if s, _ := ports.Unquote(value); s != "" {
			q.filter.Status = []string{s}
		}
		return nil
	case '[':
		return ports.ScanItems(value, func(item []byte) {
			if item[0] == '"' {
				s, _ := ports.Unquote(item)
				q.filter.Status = append(q.filter.Status, s)
			}
		})
	}
	return nil
}

// order reads `Column ASC`, `Column DESC` or `-Column`; EnqueuedAt is the lists' own order.
func (q *readQuery) order(text string) {
	column, direction, _ := strings.Cut(strings.TrimSpace(text), " ")
	q.desc = strings.EqualFold(strings.TrimSpace(direction), "DESC")
	if rest, minus := strings.CutPrefix(column, "-"); minus {
		column, q.desc = rest, true
	}
	if column != "EnqueuedAt" {
		q.orderBy = column
	}
}

// clamp reads a Limit. None, null and 0 give the usual one; more than the most gives the most.
func clamp(a ports.Action, raw []byte) (int, error) {
	limits, ok := actionLimits[a]
	if !ok {
		return 0, nil
	}
	if raw == nil || string(raw) == "null" {
		return limits.usual, nil
	}
	n, err := strconv.Atoi(string(raw))
	switch {
	case err != nil:
		return 0, ports.InField(ports.Invalid, "Limit", "is not a whole number")
	case n == 0:
		return limits.usual, nil
	}
	return min(max(n, 1), limits.most), nil
}
