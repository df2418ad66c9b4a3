package sqlite

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"holdfast/ports"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

const (
	host  = "11111111-2222-4333-8444-555555555555"
	epoch = "epoch-1"
)

// openStore gives a configured store that is closed with the test.
func openStore(t testing.TB, path string) *Store {
	t.Helper()
	s := New()
	configure(t, s, path)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func configure(t testing.TB, s *Store, path string) {
	t.Helper()
	given, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Configure(context.Background(), ports.Configuration{Name: "local", DataDir: filepath.Dir(path), Options: given}); err != nil {
		t.Fatal(err)
	}
}

// emptyFile makes a file with the schema and nothing in it.
func emptyFile(t testing.TB, path string) {
	t.Helper()
	s := New()
	configure(t, s, path)
	if _, err := s.Stand(context.Background(), host); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// admit opens the store for the host, as a start of it does.
func admit(t testing.TB, s *Store, nonce string) {
	t.Helper()
	err := s.Open(context.Background(), ports.Opening{
		HostID: host, Nonce: nonce, Next: nonce + "n",
		Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch, From: 1}, ports.Manifest: {ID: epoch, From: 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// ready gives a store in a new file that takes commits.
func ready(t testing.TB) *Store {
	t.Helper()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	admit(t, s, "")
	return s
}

func batchOf(entries []ports.Entry) ports.CommitBatch {
	return ports.CommitBatch{
		Family: entries[0].Action.Family(), Epoch: epoch,
		After: entries[0].Seq - 1, Through: entries[len(entries)-1].Seq, Entries: entries,
	}
}

// commit commits entries as one batch and gives the decisions.
func commit(t testing.TB, s *Store, entries ...ports.Entry) []ports.Decision {
	t.Helper()
	decisions, err := tryCommit(s, batchOf(entries))
	if err != nil {
		t.Fatal(err)
	}
	return decisions
}

func tryCommit(s *Store, b ports.CommitBatch) ([]ports.Decision, error) {
	p, err := s.Commit(context.Background(), b)
	if err != nil {
		return nil, err
	}
	return p.Wait(context.Background())
}

// entry is a live write that came at a time made of its Seq.
func entry(seq uint64, action ports.Action, key, record string) ports.Entry {
	e := ports.Entry{
		Seq: seq, Action: action, Class: ports.Live, Key: key, Record: []byte(record),
		ReceivedMs: 1796004734800 + int64(seq), Host: "11111111", Actor: "ops", Origin: ports.OriginHTTP,
	}
	if record == "" {
		e.Record = nil
	}
	return e
}

func upsert(seq uint64, key, record string) ports.Entry {
	return entry(seq, ports.UpsertWorkItem, key, record)
}

func patch(seq uint64, key, record string) ports.Entry {
	return entry(seq, ports.UpdateWorkItem, key, record)
}

func event(seq uint64, key, guid, record string) ports.Entry {
	e := entry(seq, ports.AppendEvent, key, record)
	e.EventGUID = guid
	return e
}

func attempt(seq uint64, action ports.Action, key string, number int64, record string) ports.Entry {
	e := entry(seq, action, key, record)
	e.Number = number
	return e
}
