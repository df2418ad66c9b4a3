package wire

import (
	"context"
	"maps"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// What changed in a local store, both halves.

// Changes tells what changed after a position; see ports.LocalStore.
func (c *Client) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	if err := checkText(q.Key); err != nil {
		return ports.ChangePage{}, err
	}
	m, err := c.rpc.Changes(ctx, changesOut(q))
	if err != nil {
		return ports.ChangePage{}, err
	}
	return changePageIn(m)
}

func (s *server) Changes(ctx context.Context, m *pb.ChangesRequest) (*pb.ChangesResponse, error) {
	return power(s, func(p ports.LocalStore) (*pb.ChangesResponse, error) {
		page, err := p.Changes(ctx, changesIn(m))
		return changePageOut(page), err
	})
}

func changesOut(q ports.ChangesQuery) *pb.ChangesRequest {
	return &pb.ChangesRequest{Family: families.out[q.Family], After: positionOut(&q.After), Key: q.Key, Limit: int64(q.Limit)}
}

func changesIn(m *pb.ChangesRequest) ports.ChangesQuery {
	q := ports.ChangesQuery{Family: families.in[m.Family], Key: m.Key, Limit: int(m.Limit)}
	if m.After != nil {
		q.After = *positionIn(m.After)
	}
	return q
}

func changePageOut(p ports.ChangePage) *pb.ChangesResponse {
	return &pb.ChangesResponse{Rows: rowsOut(p.Rows), Through: positionOut(&p.Through), End: positionOut(p.End), Dropped: p.Dropped}
}

// changePageIn refuses a page that does not say how far it goes: a reader who took that for a position would begin anew.
func changePageIn(m *pb.ChangesResponse) (ports.ChangePage, error) {
	if m.Through == nil {
		return ports.ChangePage{}, ports.Errorf(ports.Internal, "changes", "the plugin did not say how far its page goes")
	}
	rows, err := rowsIn(m.Rows)
	if err != nil {
		return ports.ChangePage{}, err
	}
	return ports.ChangePage{Rows: rows, Through: *positionIn(m.Through), End: positionIn(m.End), Dropped: maps.Clone(m.Dropped)}, nil
}
