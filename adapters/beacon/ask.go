package beacon

import (
	"context"
	"strconv"

	"holdfast/ports"
)

// The questions that a beacon answers: a record by its key, and the events of a key.

// record gives an item or a manifest as the beacon has it, taken apart and as text; nil for none.
func (s *seat) record(ctx context.Context, class ports.WorkClass, key string) (*ports.Record, []byte, error) {
	action, name, payload, table := "QP_GetWorkItemByHash", "WorkItemHash", "WorkItem", ports.Items
	if s.half.family == ports.Manifest {
		action, name, payload, table = "MS_GetManifest", "RunHash", "Manifest", ports.Manifests
	}
	r, err := s.call(ctx, action, class, text(name, key))
	if err != nil {
		return nil, nil, err
	}
	if r.absent(payload) {
		return nil, nil, nil
	}
	if !r.success {
		return nil, nil, ports.Errorf(ports.Unavailable, "beacon: "+action, "the beacon could not read: %s", short(r.reason))
	}
	given, err := ports.ParseRecord(table, r.outputs[payload])
	if err != nil {
		return nil, nil, ports.Errorf(ports.Internal, "beacon: "+action, "the beacon gave a %s that is no record", payload)
	}
	return given, r.outputs[payload], nil
}

// mostEvents is what is asked for, and what the stock store gives at most. Of a key with so many nobody knows what else there is.
const mostEvents = 2000

// eventTexts gives the events of a key as the beacon has them. It fails with TooLarge when there may be more.
func (s *seat) eventTexts(ctx context.Context, class ports.WorkClass, key string) (list [][]byte, err error) {
	const action = "QP_GetEvents"
	r, err := s.call(ctx, action, class, text("WorkItemHash", key), member{"Limit", strconv.AppendInt(nil, mostEvents, 10)})
	if err != nil {
		return nil, err
	}
	if !r.success && !r.absent("Events") {
		return nil, ports.Errorf(ports.Unavailable, "beacon: "+action, "the beacon could not read: %s", short(r.reason))
	}
	events := r.outputs["Events"]
	switch {
	case isNull(events):
		return nil, nil
	case events[0] != '[':
		return nil, ports.Errorf(ports.Internal, "beacon: "+action, "the beacon gave Events that are no list")
	}
	err = ports.ScanItems(events, func(item []byte) { list = append(list, item) })
	if err != nil {
		return nil, ports.Errorf(ports.Internal, "beacon: "+action, "the beacon gave Events that are no list")
	}
	if len(list) >= mostEvents {
		return nil, ports.OverLimit("WorkItemHash", "events or more; a beacon shows no more of a key, so nobody knows which are there", mostEvents-1, int64(len(list)))
	}
	return list, nil
}

// events gives the events of a key as they are compared.
func (s *seat) events(ctx context.Context, class ports.WorkClass, key string) ([]entry, error) {
	texts, err := s.eventTexts(ctx, class, key)
	if err != nil {
		return nil, err
	}
	entries := make([]entry, 0, len(texts))
	for _, text := range texts {
		r, err := ports.ParseRecord(ports.Events, text)
		if err != nil {
			return nil, ports.Errorf(ports.Internal, "beacon: QP_GetEvents", "the beacon gave an event that is no record")
		}
		entries = append(entries, entryOf(r))
	}
	return entries, nil
}
