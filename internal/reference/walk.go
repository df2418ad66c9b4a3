package reference

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"holdfast/ports"
)

// Export walks a family in the order of natural keys; see ports.Exporter. Sort of its cursors is the key that the walk is in.
func (s *Store) Export(ctx context.Context, q ports.ExportQuery) (page ports.Page, _ error) {
	return page, s.look(ctx, "export", q.Family, func(h *half, _ *disk, _ opener) error {
		rows := h.rows(func(place, *held) bool { return true })
		slices.SortFunc(rows, byKeys)
		if q.After != nil {
			after := h.rowAt(q.After)
			rows = slices.DeleteFunc(rows, func(r ports.Row) bool { return byKeys(r, after) <= 0 })
		}
		page = cut(rows, q.Limit, func(r *ports.Row) ports.Cursor {
			return ports.Cursor{Sort: r.Key, Kind: r.Kind, Key: cmp.Or(r.GUID, r.Key), Num: r.Number}
		})
		return nil
	})
}

// rowAt is a row as far as the order of a walk needs it.
func (h *half) rowAt(c *ports.Cursor) ports.Row {
	row := ports.Row{Kind: c.Kind, Key: c.Sort, Number: c.Num}
	if c.Kind == ports.KindEvent {
		row.GUID = c.Key
		if record := h.held[placeOf(c.Kind, "", c.Key, 0)]; record != nil { // else it was pruned, and its key with it
			row.First.OrderKey = record.First.OrderKey
		}
	}
	return row
}

// byKeys is the order of a walk: an item, its events as they came, its attempts by number.
func byKeys(a, b ports.Row) int {
	return cmp.Or(
		strings.Compare(a.Key, b.Key), cmp.Compare(rank(&a), rank(&b)),
		strings.Compare(a.First.OrderKey, b.First.OrderKey)*isEvent(&a), strings.Compare(a.GUID, b.GUID), cmp.Compare(a.Number, b.Number))
}

func isEvent(r *ports.Row) int {
	if r.Kind == ports.KindEvent {
		return 1
	}
	return 0
}

// Prune removes what ended before a time, an item with its events and attempts; see ports.Pruner. It leaves no tombstones.
func (s *Store) Prune(ctx context.Context, q ports.PruneQuery) (pruned ports.Pruned, _ error) {
	return pruned, s.use(ctx, "prune", func(d *disk, _ opener) error {
		left := q.Limit
		if left <= 0 {
			left = usualPage
		}
		before := ports.KeyOfTime(q.Before)
		for _, f := range ports.Families {
			h := d.halves[f]
			for at, record := range h.held {
				if !record.endedBefore(at.kind, before) {
					continue
				}
				if left == 0 {
					pruned.More = true
					return nil
				}
				left--
				h.prune(at, &pruned)
			}
		}
		return nil
	})
}

// endedBefore says whether a record is finished, and the first time that it tells lies before a key.
func (record *held) endedBefore(k ports.Kind, before string) bool {
	terminal, times := ports.TerminalItems, []string{"LastEventAt", "CompletedAt", "EnqueuedAt"}
	switch k {
	case ports.KindItem:
	case ports.KindManifest:
		terminal, times = ports.TerminalManifests, []string{"StopTime", "StartTime"}
	default:
		return false
	}
	at := ports.FinishedKey(record.Record, times...)
	return slices.Contains(terminal, record.Record.Text("Status")) && at != "" && at < before
}

func (h *half) prune(victim place, pruned *ports.Pruned) {
	if victim.kind == ports.KindManifest {
		delete(h.held, victim)
		pruned.Manifests++
		return
	}
	for at, record := range h.held {
		if record.key != victim.key {
			continue
		}
		delete(h.held, at)
		switch at.kind {
		case ports.KindItem:
			pruned.Items++
		case ports.KindEvent:
			pruned.Events++
		case ports.KindAttempt:
			pruned.Attempts++
		}
	}
}
