package wire

import (
	"maps"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// Rows share their bodies with the messages that carry them; neither side writes into one.

// rowsOut makes the messages of many rows in one piece of memory.
func rowsOut(rows []ports.Row) []*pb.Row {
	slab := make([]pb.Row, len(rows))
	out := make([]*pb.Row, len(rows))
	for i := range rows {
		rowOut(&rows[i], &slab[i])
		out[i] = &slab[i]
	}
	return out
}

func rowOut(r *ports.Row, m *pb.Row) {
	m.Kind, m.Key, m.Guid, m.Number, m.Gone, m.Body = kinds.out[r.Kind], r.Key, r.GUID, r.Number, r.Gone, r.Body
	m.ReceivedAt, m.OrderKey, m.EnqueuedKey, m.EmittedAt = r.First.ReceivedAt, r.First.OrderKey, r.First.EnqueuedKey, r.First.EmittedAt
	m.Actor, m.Origin = r.First.Actor, r.First.Origin
	m.ChangeHost, m.ChangeSeq = r.Change.Host, r.Change.Seq
}

func rowsIn(rows []*pb.Row) ([]ports.Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	in := make([]ports.Row, len(rows))
	for i, m := range rows {
		r, err := rowIn(m)
		if err != nil {
			return nil, err
		}
		in[i] = r
	}
	return in, nil
}

func rowIn(m *pb.Row) (ports.Row, error) {
	kind, known := kinds.in[m.GetKind()]
	if !known {
		return ports.Row{}, ports.Errorf(ports.Internal, "read row", "its kind is %d, which this side does not know", m.GetKind())
	}
	return ports.Row{
		Kind: kind, Key: m.Key, GUID: m.Guid, Number: m.Number, Gone: m.Gone, Body: m.Body,
		First: ports.First{
			ReceivedAt: m.ReceivedAt, OrderKey: m.OrderKey, EnqueuedKey: m.EnqueuedKey, EmittedAt: m.EmittedAt,
			Actor: m.Actor, Origin: m.Origin,
		},
		Change: ports.Change{Host: m.ChangeHost, Seq: m.ChangeSeq},
	}, nil
}

func pageOut(p ports.Page) *pb.Page {
	return &pb.Page{Rows: rowsOut(p.Rows), Next: cursorOut(p.Next), Partial: p.Partial}
}

func pageIn(m *pb.Page) (ports.Page, error) {
	rows, err := rowsIn(m.GetRows())
	if err != nil {
		return ports.Page{}, err
	}
	return ports.Page{Rows: rows, Next: cursorIn(m.GetNext()), Partial: m.GetPartial()}, nil
}

func cursorOut(c *ports.Cursor) *pb.Cursor {
	if c == nil {
		return nil
	}
	return &pb.Cursor{Sort: c.Sort, Key: c.Key, Kind: kinds.out[c.Kind], Number: c.Num}
}

func cursorIn(m *pb.Cursor) *ports.Cursor {
	if m == nil {
		return nil
	}
	return &ports.Cursor{Sort: m.Sort, Key: m.Key, Kind: kinds.in[m.Kind], Num: m.Number}
}

func positionOut(p *ports.Position) *pb.Position {
	if p == nil {
		return nil
	}
	return &pb.Position{StoreId: p.StoreID, Epoch: p.Epoch, Seqs: p.Seqs}
}

func positionIn(m *pb.Position) *ports.Position {
	if m == nil {
		return nil
	}
	return &ports.Position{StoreID: m.StoreId, Epoch: m.Epoch, Seqs: maps.Clone(m.Seqs)}
}
