package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// checkText refuses a query's texts that no message can carry. No stored text could match them.
func checkText(texts ...string) error {
	for _, t := range texts {
		if !utf8.ValidString(t) {
			return ports.Errorf(ports.Invalid, "query", "a filter is not valid UTF-8")
		}
	}
	return nil
}

func itemsOut(q ports.ItemQuery) (*pb.ItemsRequest, error) {
	f := q.Filter
	if err := checkText(append([]string{f.Capability, f.Action, f.RunID, f.RunHash, f.OperationHash, f.AssignedBeaconID, f.AffinityKey,
		f.From, f.To, f.ErrorText, q.OrderBy}, f.Status...)...); err != nil {
		return nil, err
	}
	return &pb.ItemsRequest{
		Status: f.Status, Capability: f.Capability, Action: f.Action, RunId: f.RunID, RunHash: f.RunHash,
		OperationHash: f.OperationHash, AssignedBeaconId: f.AssignedBeaconID, AffinityKey: f.AffinityKey,
		From: f.From, To: f.To, ErrorText: f.ErrorText,
		OrderBy: q.OrderBy, Desc: q.Desc, After: cursorOut(q.After), Limit: int64(q.Limit), Bodies: q.Bodies,
	}, nil
}

func itemsIn(m *pb.ItemsRequest) ports.ItemQuery {
	return ports.ItemQuery{
		Filter: ports.ItemFilter{
			Status: m.Status, Capability: m.Capability, Action: m.Action, RunID: m.RunId, RunHash: m.RunHash,
			OperationHash: m.OperationHash, AssignedBeaconID: m.AssignedBeaconId, AffinityKey: m.AffinityKey,
			From: m.From, To: m.To, ErrorText: m.ErrorText,
		},
		OrderBy: m.OrderBy, Desc: m.Desc, After: cursorIn(m.After), Limit: int(m.Limit), Bodies: m.Bodies,
	}
}

func eventsOut(q ports.EventQuery) (*pb.EventsRequest, error) {
	if err := checkText(q.Key); err != nil {
		return nil, err
	}
	return &pb.EventsRequest{Key: q.Key, Desc: q.Desc, After: cursorOut(q.After), Limit: int64(q.Limit), Bodies: q.Bodies}, nil
}

func eventsIn(m *pb.EventsRequest) ports.EventQuery {
	return ports.EventQuery{Key: m.Key, Desc: m.Desc, After: cursorIn(m.After), Limit: int(m.Limit), Bodies: m.Bodies}
}

func attemptsOut(q ports.AttemptQuery) (*pb.AttemptsRequest, error) {
	if err := checkText(q.Key); err != nil {
		return nil, err
	}
	return &pb.AttemptsRequest{Key: q.Key, After: cursorOut(q.After), Limit: int64(q.Limit)}, nil
}

func attemptsIn(m *pb.AttemptsRequest) ports.AttemptQuery {
	return ports.AttemptQuery{Key: m.Key, After: cursorIn(m.After), Limit: int(m.Limit)}
}

func manifestsOut(q ports.ManifestQuery) (*pb.ManifestsRequest, error) {
	if err := checkText(append([]string{q.OperationHash, q.From, q.To}, q.Status...)...); err != nil {
		return nil, err
	}
	return &pb.ManifestsRequest{
		OperationHash: q.OperationHash, Status: q.Status, From: q.From, To: q.To, Desc: q.Desc,
		After: cursorOut(q.After), Limit: int64(q.Limit), Bodies: q.Bodies,
	}, nil
}

func manifestsIn(m *pb.ManifestsRequest) ports.ManifestQuery {
	return ports.ManifestQuery{
		OperationHash: m.OperationHash, Status: m.Status, From: m.From, To: m.To, Desc: m.Desc,
		After: cursorIn(m.After), Limit: int(m.Limit), Bodies: m.Bodies,
	}
}

func exportOut(q ports.ExportQuery) *pb.ExportRequest {
	return &pb.ExportRequest{Family: families.out[q.Family], After: cursorOut(q.After), Limit: int64(q.Limit)}
}

func exportIn(m *pb.ExportRequest) ports.ExportQuery {
	return ports.ExportQuery{Family: families.in[m.Family], After: cursorIn(m.After), Limit: int(m.Limit)}
}

func pruneOut(q ports.PruneQuery) *pb.PruneRequest {
	return &pb.PruneRequest{Before: timestamppb.New(q.Before), Limit: int64(q.Limit)}
}

func pruneIn(m *pb.PruneRequest) ports.PruneQuery {
	return ports.PruneQuery{Before: m.Before.AsTime(), Limit: int(m.Limit)}
}
