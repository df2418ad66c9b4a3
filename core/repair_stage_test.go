package core

import (
	"fmt"
	"testing"
	"time"

	"holdfast/ports"
)

// What the repairs are tried on.

// elsewhere is a host that no local store of a test knows.
const elsewhere = "99999999-0000-0000-0000-000000000000"

func stamped(n uint64) ports.First {
	return ports.First{
		OrderKey: fmt.Sprintf("%014d-%016d-elsewhere", n, n), ReceivedAt: "2026-01-01T00:00:00.000Z", Actor: "somebody", Origin: ports.OriginHTTP,
	}
}

func itemRow(key, members string, seq uint64) ports.Row {
	first := stamped(seq)
	first.EnqueuedKey = fmt.Sprintf("2026-01-01T00:00:00.%09dZ", seq)
	return ports.Row{
		Kind: ports.KindItem, Key: key, Body: fmt.Appendf(nil, `{"WorkItemHash":%q%s}`, key, members), First: first,
		Change: ports.Change{Host: elsewhere, Seq: seq},
	}
}

func eventRow(key, guid, members string, seq uint64) ports.Row {
	return ports.Row{
		Kind: ports.KindEvent, Key: key, GUID: guid, First: stamped(seq), Change: ports.Change{Host: elsewhere, Seq: seq},
		Body: fmt.Appendf(nil, `{"WorkItemHash":%q,"EventGUID":%q%s}`, key, guid, members),
	}
}

func attemptRow(key string, number int64, members string, seq uint64) ports.Row {
	return ports.Row{
		Kind: ports.KindAttempt, Key: key, Number: number, First: stamped(seq), Change: ports.Change{Host: elsewhere, Seq: seq},
		Body: fmt.Appendf(nil, `{"WorkItemHash":%q,"AttemptNumber":%d%s}`, key, number, members),
	}
}

func manifestRow(key, members string, seq uint64) ports.Row {
	return ports.Row{
		Kind: ports.KindManifest, Key: key, First: stamped(seq), Change: ports.Change{Host: elsewhere, Seq: seq},
		Body: fmt.Appendf(nil, `{"Hash":%q%s}`, key, members),
	}
}

// history is items with two events and an attempt each, one event without an item, and manifests.
func history(n int) (rows []ports.Row) {
	for i := range n {
		key, seq := fmt.Sprintf("item-%03d", i), uint64(10*i+1)
		rows = append(rows,
			itemRow(key, `,"Status":"Running"`, seq),
			eventRow(key, key+"-a", `,"EventType":"Started"`, seq+1), eventRow(key, key+"-b", `,"EventType":"Ended"`, seq+2),
			attemptRow(key, 1, `,"Outcome":"Complete"`, seq+3),
			manifestRow(fmt.Sprintf("run-%03d", i), `,"Status":"Complete"`, seq+4))
	}
	return append(rows, eventRow("orphan", "orphan-a", `,"EventType":"Lost"`, 9000))
}

// has puts rows on a mirror's disk, past its host.
func (m *mirror) has(rows ...ports.Row) {
	m.change(func(m *mirror) {
		for i := range rows {
			m.disk.put(&rows[i])
		}
	})
}

// lacks takes records off a mirror's disk, past its host.
func (m *mirror) lacks(rows ...ports.Row) {
	m.change(func(m *mirror) {
		for i := range rows {
			delete(m.disk.rows, placeOfRow(&rows[i]))
		}
	})
}

func (m *mirror) row(kind ports.Kind, key, guid string, number int64) (ports.Row, bool) {
	row, ok := m.look().rows[placeOf(kind, key, guid, number)]
	return row, ok
}

// writes brings some history into the local store: items with an event and an attempt each, and manifests.
func (s *stage) writes(n int) {
	s.t.Helper()
	for i := range n {
		key := fmt.Sprintf("live-%03d", i)
		s.does(upsert(key, "Running"), Done)
		s.does(call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventGUID":"%s-a","EventType":"Started"}}`, key, key), Done)
		s.does(call(ports.InsertAttempt, `{"Attempt":{"WorkItemHash":%q,"AttemptNumber":1,"BeaconID":"b"}}`, key), Done)
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"run-%s","Status":"Running"}}`, key), Done)
	}
}

// repairing plays a scene with followers that have caught up, and small pieces.
func repairing(t *testing.T, names []string, scene func(t *testing.T, s *stage)) {
	t.Helper()
	playWith(t, func(s *stage) {
		for i, name := range names {
			s.follows(name, func(m *mirror) { m.slots = 5 * i }) // the first one by one, the others in lanes
		}
	}, func(t *testing.T, s *stage) {
		s.inPieces(3)
		for _, name := range names {
			s.catchesUp(name, 10*time.Second)
		}
		scene(t, s)
	})
}

func (s *stage) inPieces(n int) { s.host.repairs.piece = n }

func expectCode(t *testing.T, err error, want ports.Code) {
	t.Helper()
	if got := ports.CodeOf(err); got != want {
		t.Errorf("the error is %q (%v), want %q", got, err, want)
	}
}
