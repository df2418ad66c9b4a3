package reference

import (
	"context"
	"maps"
	"slices"

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
	if err := row.Identify(record); err != nil {
		return err
	}
	h.set(at, &held{Held: ports.Held{Record: record, First: row.FirstOf(record), Change: row.Change}, key: row.Key})
	return nil
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
