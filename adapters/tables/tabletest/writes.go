package tabletest

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"holdfast/ports"
)

// Host opens the store; Other wrote to it before, and Stranger has rows in it but no mark.
const (
	Host     = "11111111-2222-4333-8444-555555555555"
	Other    = "00000000-2222-4333-8444-555555555555"
	Stranger = "ffffffff-2222-4333-8444-555555555555"

	// Epoch is the first of both journals of Host.
	Epoch = "epoch-1"
)

// Admit opens a store for Host, as a start of it does.
func Admit(t Failer, s ports.LocalStore, nonce string) {
	t.Helper()
	if err := s.Open(context.Background(), StartOf(Host, nonce, 0)); err != nil {
		t.Fatal(err)
	}
}

// StartOf is the first start of a host.
func StartOf(host, nonce string, retention time.Duration) ports.Opening {
	return ports.Opening{
		HostID: host, Nonce: nonce, Next: nonce + "n", Retention: retention,
		Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: Epoch, From: 1}, ports.Manifest: {ID: Epoch, From: 1}},
	}
}

// Restart opens a store for Host once more, as its next start does.
func Restart(t Failer, s ports.LocalStore, nonce, epoch string, from uint64, resume map[ports.Family]uint64) {
	t.Helper()
	o := StartOf(Host, nonce, 0)
	o.Resume = resume
	for f := range o.Epochs {
		o.Epochs[f] = ports.Epoch{ID: epoch, From: from}
	}
	if err := s.Open(context.Background(), o); err != nil {
		t.Fatal(err)
	}
}

// BatchOf makes a batch of entries in a row.
func BatchOf(entries []ports.Entry) ports.CommitBatch {
	return ports.CommitBatch{
		Family: entries[0].Action.Family(), Epoch: Epoch,
		After: entries[0].Seq - 1, Through: entries[len(entries)-1].Seq, Entries: entries,
	}
}

// Commit commits entries as one batch and gives the decisions.
func Commit(t Failer, s ports.LocalStore, entries ...ports.Entry) []ports.Decision {
	t.Helper()
	decisions, err := TryCommit(s, BatchOf(entries))
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

// TryCommit commits a batch.
func TryCommit(s ports.LocalStore, b ports.CommitBatch) ([]ports.Decision, error) {
	p, err := s.Commit(context.Background(), b)
	if err != nil {
		return nil, err
	}
	return p.Wait(context.Background())
}

// Pour commits entries in batches of the largest size with some of them in flight, as a host does.
func Pour(t testing.TB, s ports.LocalStore, entries []ports.Entry) {
	t.Helper()
	var waiting []ports.Pending
	settle := func(left int) {
		for ; len(waiting) > left; waiting = waiting[1:] {
			if _, err := waiting[0].Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
	}
	for some := range slices.Chunk(entries, ports.MaxBatchEntries) {
		p, err := s.Commit(context.Background(), BatchOf(some))
		if err != nil {
			t.Fatal(err)
		}
		waiting = append(waiting, p)
		settle(3)
	}
	settle(0)
}

// EntryOf is a live write that came at a time made of its Seq.
func EntryOf(seq uint64, action ports.Action, key, record string) ports.Entry {
	e := ports.Entry{
		Seq: seq, Action: action, Class: ports.Live, Key: key, Record: []byte(record),
		ReceivedMs: 1796004734800 + int64(seq), Host: "11111111", Actor: "ops", Origin: ports.OriginHTTP,
	}
	if record == "" {
		e.Record = nil
	}
	return e
}

// UpsertOf is an upsert of a work item.
func UpsertOf(seq uint64, key, record string) ports.Entry {
	return EntryOf(seq, ports.UpsertWorkItem, key, record)
}

// PatchOf is an update of a work item.
func PatchOf(seq uint64, key, record string) ports.Entry {
	return EntryOf(seq, ports.UpdateWorkItem, key, record)
}

// EventOf is an event of a work item.
func EventOf(seq uint64, key, guid, record string) ports.Entry {
	e := EntryOf(seq, ports.AppendEvent, key, record)
	e.EventGUID = guid
	return e
}

// AttemptOf is a write of an attempt.
func AttemptOf(seq uint64, action ports.Action, key string, number int64, record string) ports.Entry {
	e := EntryOf(seq, action, key, record)
	e.Number = number
	return e
}

// KeysOf lists the keys of a page's rows.
func KeysOf(p ports.Page) (keys []string) {
	for _, r := range p.Rows {
		keys = append(keys, r.Key)
	}
	return keys
}

// Pages walks a list to its end and gives the keys, of events their GUIDs.
func Pages(t testing.TB, next func(after *ports.Cursor) (ports.Page, error)) (keys []string) {
	t.Helper()
	var after *ports.Cursor
	for {
		page, err := next(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			keys = append(keys, cmp.Or(r.GUID, r.Key))
		}
		if page.Next == nil {
			return keys
		}
		// A token is what callers hold.
		if after, err = ports.ParseCursor(page.Next.Token()); err != nil {
			t.Fatal(err)
		}
	}
}
