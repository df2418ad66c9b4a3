package stock

// What each action of a persistence beacon does and answers. All of it runs with the lock of the Persistence held.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// outputs are what an action answers.
type outputs = map[string]any

func refused(reason string) outputs { return outputs{"Success": false, "Reason": reason} }

// apply does a write unless it is refused.
func (p *Persistence) apply(action, key string, write func() json.RawMessage) any {
	if key == "" {
		return refused(action + " names no record")
	}
	if p.refuse != nil {
		if reason := p.refuse(action, key); reason != "" {
			return refused(reason)
		}
	}
	record := write()
	p.writes++
	if p.watch != nil {
		p.watch(Write{Action: action, Key: key, Record: record})
	}
	return outputs{"Success": true}
}

// unknown answers a patch of what is not there.
func (p *Persistence) unknown(what string) any {
	if p.strict {
		return refused("Unknown " + what)
	}
	return outputs{"Success": true}
}

func (p *Persistence) upsertItem(settings members) any {
	item := inside(settings["WorkItem"])
	key := text(item["WorkItemHash"])
	return p.apply("QP_UpsertWorkItem", key, func() json.RawMessage { return document(p.items.lay(key, item)) })
}

func (p *Persistence) updateItem(settings members) any {
	key := text(settings["WorkItemHash"])
	if _, ok := p.items.rows[key]; !ok {
		return p.unknown("work item " + key)
	}
	return p.apply("QP_UpdateWorkItem", key, func() json.RawMessage {
		return document(p.items.lay(key, inside(settings["Patch"])))
	})
}

func (p *Persistence) appendEvent(settings members) any {
	event := settings["Event"]
	key := text(inside(event)["WorkItemHash"])
	return p.apply("QP_AppendEvent", key, func() json.RawMessage {
		p.events[key] = append(p.events[key], event)
		return event
	})
}

func (p *Persistence) insertAttempt(settings members) any {
	attempt := inside(settings["Attempt"])
	key := text(attempt["WorkItemHash"])
	return p.apply("QP_InsertAttempt", key, func() json.RawMessage {
		return document(p.attempts.lay(attemptKey(key, attempt["AttemptNumber"]), attempt))
	})
}

func (p *Persistence) updateAttempt(settings members) any {
	key := text(settings["WorkItemHash"])
	row := attemptKey(key, settings["AttemptNumber"])
	if _, ok := p.attempts.rows[row]; !ok {
		return p.unknown("attempt")
	}
	return p.apply("QP_UpdateAttemptOutcome", key, func() json.RawMessage {
		return document(p.attempts.lay(row, inside(settings["Patch"])))
	})
}

func attemptKey(hash string, number json.RawMessage) string { return hash + "#" + string(number) }

func (p *Persistence) upsertManifest(settings members) any {
	manifest := inside(settings["Manifest"])
	key := text(manifest["Hash"])
	return p.apply("MS_UpsertManifest", key, func() json.RawMessage {
		clear(p.manifests.lay(key, nil)) // a manifest is replaced, not patched
		return document(p.manifests.lay(key, manifest))
	})
}

func (p *Persistence) removeManifest(settings members) any {
	key := text(settings["RunHash"])
	return p.apply("MS_RemoveManifest", key, func() json.RawMessage {
		p.manifests.remove(key)
		return nil
	})
}

func (p *Persistence) item(settings members) any {
	return found("WorkItem", p.items.rows[text(settings["WorkItemHash"])])
}

func (p *Persistence) manifest(settings members) any {
	return found("Manifest", p.manifests.rows[text(settings["RunHash"])])
}

func found(name string, row members) any {
	if row == nil {
		return outputs{"Success": false, name: nil}
	}
	return outputs{"Success": true, name: document(row)}
}

func (p *Persistence) eventsOf(settings members) any {
	events := append([]json.RawMessage{}, p.events[text(settings["WorkItemHash"])]...)
	if limit := number(settings["Limit"]); limit > 0 {
		events = events[:min(limit, len(events))]
	}
	return outputs{"Success": true, "Events": events}
}

func (p *Persistence) listItems(settings members) any {
	rows := p.items.list(inside(settings["Filter"]), "EnqueuedAt", "Status", "AssignedBeaconID", "RunID", "Capability")
	return outputs{"Success": true, "WorkItems": rows}
}

func (p *Persistence) listManifests(settings members) any {
	rows := p.manifests.list(inside(settings["Filter"]), "", "OperationHash", "Status")
	return outputs{"Success": true, "Manifests": rows}
}

// list gives the rows whose columns are as the filter says, ordered by what it says, else by the column given, else as they
// came; at most 500 unless it says how many.
func (t *table) list(filter members, order string, columns ...string) []json.RawMessage {
	var rows []members
	for _, key := range t.keys {
		if row := t.rows[key]; fits(row, filter, columns) {
			rows = append(rows, row)
		}
	}
	column, down := ordering(text(filter["OrderBy"]), order)
	if column != "" {
		slices.SortStableFunc(rows, func(a, b members) int {
			c := cmp.Compare(text(a[column]), text(b[column]))
			if down {
				return -c
			}
			return c
		})
	}
	limit := number(filter["Limit"])
	if limit <= 0 {
		limit = 500
	}
	list := []json.RawMessage{}
	for _, row := range rows[:min(limit, 5000, len(rows))] {
		list = append(list, document(row))
	}
	return list
}

// ordering reads "-EnqueuedAt", "EnqueuedAt DESC" and "EnqueuedAt".
func ordering(asked, fallback string) (column string, down bool) {
	if asked == "" {
		return fallback, false
	}
	if name, ok := strings.CutPrefix(asked, "-"); ok {
		return name, true
	}
	name, direction, _ := strings.Cut(asked, " ")
	return name, strings.EqualFold(direction, "DESC")
}

func fits(row, filter members, columns []string) bool {
	return !slices.ContainsFunc(columns, func(column string) bool {
		wanted, ok := filter[column]
		return ok && !among(row[column], wanted)
	})
}

func among(value, wanted json.RawMessage) bool {
	var several []string
	if json.Unmarshal(wanted, &several) == nil {
		return slices.Contains(several, text(value))
	}
	return bytes.Equal(value, wanted)
}

// inside reads an object; nil when it is none.
func inside(doc json.RawMessage) members {
	var m members
	if json.Unmarshal(doc, &m) != nil {
		return nil
	}
	return m
}

func number(doc json.RawMessage) int {
	n, err := strconv.Atoi(string(doc))
	if err != nil {
		return 0
	}
	return n
}
