package wire

import (
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// entryOverhead is more than an entry's fields other than its texts can take on the wire.
const entryOverhead = 128

// batchOut makes the message of a batch. What could not be sent is refused here and now, because an error while a message
// is being written would end the stream for the batches before it as well.
func batchOut(b *ports.CommitBatch) (*pb.CommitRequest, error) {
	family, known := families.out[b.Family]
	if !known {
		return nil, ports.Errorf(ports.Invalid, "commit", "there is no family %q", b.Family)
	}
	m := &pb.CommitRequest{Family: family, Epoch: b.Epoch, After: b.After, Through: b.Through}
	slab := make([]pb.Entry, len(b.Entries))
	m.Entries = make([]*pb.Entry, len(b.Entries))
	size := 0
	for i := range b.Entries {
		e, out := &b.Entries[i], &slab[i]
		action, known := actions.out[e.Action]
		if !known {
			return nil, ports.Errorf(ports.Invalid, "commit", "entry %d has the action %q, which is no write", e.Seq, e.Action)
		}
		for _, text := range [...]string{e.Key, e.Host, e.Actor, e.Origin, e.EventGUID} {
			if !utf8.ValidString(text) {
				return nil, ports.Errorf(ports.Invalid, "commit", "entry %d has a text that is not valid UTF-8", e.Seq)
			}
			size += len(text)
		}
		size += len(e.Record) + entryOverhead
		out.Seq, out.Action, out.Reflush, out.Key, out.Number, out.Record = e.Seq, action, e.Class == ports.Reflush, e.Key, e.Number, e.Record
		out.ReceivedMs, out.Host, out.Actor, out.Origin = e.ReceivedMs, e.Host, e.Actor, e.Origin
		out.EventGuid, out.GuidGiven, out.Again = e.EventGUID, e.GUIDGiven, e.Again
		out.StampMs, out.StampCount = e.Stamp.Ms, e.Stamp.Count
		m.Entries[i] = out
	}
	if size > ports.MaxMessageBytes-1<<20 {
		if exact := proto.Size(m) + 16; exact > ports.MaxMessageBytes {
			return nil, ports.OverLimit("batch", "bytes", ports.MaxMessageBytes, int64(exact))
		}
	}
	return m, nil
}

func batchIn(m *pb.CommitRequest) (ports.CommitBatch, error) {
	b := ports.CommitBatch{Family: families.in[m.Family], Epoch: m.Epoch, After: m.After, Through: m.Through}
	if b.Family == "" {
		return b, ports.Errorf(ports.Invalid, "commit", "the batch's family is %d, which this plugin does not know", m.Family)
	}
	b.Entries = make([]ports.Entry, len(m.Entries))
	for i, e := range m.Entries {
		action, known := actions.in[e.Action]
		if !known {
			return b, ports.Errorf(ports.Invalid, "commit", "the action of entry %d is %d, which this plugin does not know", e.Seq, e.Action)
		}
		class := ports.Live
		if e.Reflush {
			class = ports.Reflush
		}
		b.Entries[i] = ports.Entry{
			Seq: e.Seq, Action: action, Class: class, Key: e.Key, Number: e.Number, Record: e.Record,
			ReceivedMs: e.ReceivedMs, Host: e.Host, Actor: e.Actor, Origin: e.Origin,
			EventGUID: e.EventGuid, GUIDGiven: e.GuidGiven, Again: e.Again,
			Stamp: ports.Stamp{Ms: e.StampMs, Count: e.StampCount},
		}
	}
	return b, nil
}

// decisionsOut lists the decisions that are not a plain "stored", after a check that the store decided what it was given.
func decisionsOut(entries []ports.Entry, decisions []ports.Decision) ([]*pb.Decision, error) {
	if len(decisions) != len(entries) {
		return nil, ports.Errorf(ports.Internal, "commit", "the store gave %d decisions for %d entries", len(decisions), len(entries))
	}
	var odd []*pb.Decision
	for i := range decisions {
		d := &decisions[i]
		if d.Seq != entries[i].Seq {
			return nil, ports.Errorf(ports.Internal, "commit", "the store decided entry %d where %d stands", d.Seq, entries[i].Seq)
		}
		if d.Plain() {
			continue
		}
		outcome, known := outcomes.out[d.Outcome]
		if !known {
			return nil, ports.Errorf(ports.Internal, "commit", "the store decided %q of entry %d, which is no outcome", d.Outcome, d.Seq)
		}
		m := &pb.Decision{Seq: d.Seq, Outcome: outcome, Applied: int64(d.Applied), Dropped: int64(d.Dropped), Waiting: int64(d.Waiting), Foreign: d.Foreign}
		if d.Err != nil {
			m.Error = detailOf(d.Err)
		}
		odd = append(odd, m)
	}
	return odd, nil
}

// decisionsIn gives each entry its decision. seqs are those of the batch's entries.
func decisionsIn(seqs []uint64, odd []*pb.Decision) ([]ports.Decision, error) {
	decisions := make([]ports.Decision, len(seqs))
	next := 0
	for i, seq := range seqs {
		decisions[i] = ports.Decision{Seq: seq, Outcome: ports.Stored}
		if next == len(odd) || odd[next].Seq != seq {
			continue
		}
		outcome, known := outcomes.in[odd[next].Outcome]
		if !known {
			return nil, ports.Errorf(ports.Internal, "commit", "the plugin answered entry %d with the outcome %d, which this host does not know", seq, odd[next].Outcome)
		}
		decisions[i].Outcome, decisions[i].Waiting = outcome, int(odd[next].Waiting)
		decisions[i].Applied, decisions[i].Dropped, decisions[i].Foreign = int(odd[next].Applied), int(odd[next].Dropped), odd[next].Foreign
		if outcome == ports.Refused {
			decisions[i].Err = errorOf(odd[next].Error)
		}
		next++
	}
	if next != len(odd) {
		return nil, ports.Errorf(ports.Internal, "commit", "the plugin decided entry %d, which is not in the batch or not in its order", odd[next].Seq)
	}
	return decisions, nil
}
