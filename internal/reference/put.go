package reference

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"holdfast/ports"
)

// Put replaces records whole; see ports.Backend.
func (s *Store) Put(ctx context.Context, b ports.Batch) (applied ports.Applied, _ error) {
	err := s.look(ctx, "put", b.Family, func(h *half, d *disk, by opener) error {
		opened := by.host != "" // then the store is the truth, and its own marks say how far it is
		if at := h.positionOf(d, by.host); b.After != nil && !opened && (b.After.StoreID != d.storeID || !at.Covers(*b.After) || !b.After.Covers(at)) {
			return ports.InField(ports.Conflict, ports.FieldPosition, "the store %s is at %v, the batch is for %s at %v", d.storeID, at.Seqs, b.After.StoreID, b.After.Seqs)
		}
		for i := range b.Rows {
			if err := h.put(&b.Rows[i]); err != nil {
				return err
			}
			applied.Done++
		}
		if b.Position != nil && !opened {
			at := *b.Position
			at.Seqs = maps.Clone(at.Seqs)
			h.position = &at
		}
		return nil
	})
	return applied, err
}

func (h *half) put(row *ports.Row) error {
	if !slices.Contains(ports.Kinds, row.Kind) || row.Key == "" || row.Kind == ports.KindEvent && row.GUID == "" {
		return ports.InField(ports.Invalid, "Key", "a row of kind %q without its key", row.Kind)
	}
	at := placeOf(row.Kind, row.Key, row.GUID, row.Number)
	if row.Gone {
		h.remove(at, row.Change)
		return nil
	}
	record, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body)
	if err != nil {
		return err
	}
	if err := identify(row, record); err != nil {
		return err
	}
	h.set(at, &held{Held: ports.Held{Record: record, First: firstOf(row, record), Change: row.Change}, key: row.Key})
	return nil
}

// identify gives a record the member that tells it from others of its key, where it has none.
func identify(row *ports.Row, record *ports.Record) error {
	var name string
	var text []byte
	switch row.Kind {
	case ports.KindEvent:
		name, text = "EventGUID", ports.AppendQuoted(nil, row.GUID)
	case ports.KindAttempt:
		name, text = "AttemptNumber", strconv.AppendInt(nil, row.Number, 10)
	default:
		return nil
	}
	given := record.Get(name)
	if given == nil {
		record.Set(name, text)
		return nil
	}
	column := &record.Table.Members[record.Table.Member(name)]
	theirs, _ := column.Project(given)
	if ours, _ := column.Project(text); theirs != ours {
		return ports.InField(ports.Invalid, name, "is not that of the row that has the record")
	}
	return nil
}

// firstOf is what a row's first write fixed, as far as its kind has it.
func firstOf(row *ports.Row, record *ports.Record) ports.First {
	first := row.First
	if row.Kind != ports.KindItem {
		first.EnqueuedKey = ""
	}
	if row.Kind != ports.KindEvent || record.Get("EmittedAt") != nil {
		first.EmittedAt = ""
	}
	return first
}

// Position says how far the store is: as the last Put said, or for a local store as its marks say.
func (s *Store) Position(ctx context.Context, f ports.Family) (p ports.Position, _ error) {
	return p, s.look(ctx, "position", f, func(h *half, d *disk, by opener) error {
		p = h.positionOf(d, by.host)
		return nil
	})
}

func (h *half) positionOf(d *disk, opener string) ports.Position {
	p := ports.Position{StoreID: d.storeID, Epoch: h.newest(opener), Seqs: map[string]uint64{}}
	if h.position != nil {
		p.Epoch, p.Seqs = h.position.Epoch, maps.Clone(h.position.Seqs)
		return p
	}
	for id, known := range h.hosts {
		if known.marked {
			p.Seqs[id] = known.mark.Seq
		}
	}
	return p
}

// newest is the newest epoch of a host.
func (h *half) newest(id string) string {
	known := h.hosts[id]
	if known == nil || len(known.epochs) == 0 {
		return ""
	}
	return known.epochs[len(known.epochs)-1].ID
}
