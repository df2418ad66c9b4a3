package sqlite

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestMain(m *testing.M) {
	if child() {
		return
	}
	goleak.VerifyTestMain(m)
}

// The words of tests on tables.
const (
	host  = tabletest.Host
	epoch = tabletest.Epoch
)

var (
	batchOf   = tabletest.BatchOf
	tryCommit = tabletest.TryCommit
	entry     = tabletest.EntryOf
	upsert    = tabletest.UpsertOf
	patch     = tabletest.PatchOf
	event     = tabletest.EventOf
	attempt   = tabletest.AttemptOf
	keysOf    = tabletest.KeysOf
)

func commit(t testing.TB, s *Store, entries ...ports.Entry) []ports.Decision {
	t.Helper()
	return tabletest.Commit(t, s, entries...)
}

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

func admit(t testing.TB, s *Store, nonce string) {
	t.Helper()
	tabletest.Admit(t, s, nonce)
}

// ready gives a store in a new file that takes commits.
func ready(t testing.TB) *Store {
	t.Helper()
	s := openStore(t, filepath.Join(t.TempDir(), "history.db"))
	admit(t, s, "")
	return s
}
