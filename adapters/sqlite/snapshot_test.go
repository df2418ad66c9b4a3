package sqlite

import (
	"context"
	"errors"
	"testing"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestASnapshotThatEndsBadlyIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{}`))
	idle := func() int {
		s.file.snapshots.mu.Lock()
		defer s.file.snapshots.mu.Unlock()
		return len(s.file.snapshots.idle)
	}
	tabletest.Changes(t, s, ports.ChangesQuery{Family: ports.Queue})
	if n := idle(); n != 1 {
		t.Fatalf("%d are idle after a good one", n)
	}
	refused := errors.New("not this one")
	if err := s.file.snapshots.view(t.Context(), func(*reading) error { return refused }); !errors.Is(err, refused) || idle() != 1 {
		t.Errorf("a refusal: %v, %d idle", err, idle())
	}
	func() {
		defer func() { _ = recover() }()
		_ = s.file.snapshots.view(t.Context(), func(r *reading) error {
			if _, err := r.word(readKey, tables.KeyStoreID); err != nil {
				t.Error(err)
			}
			panic("in the middle of it")
		})
	}()
	if n := idle(); n != 0 {
		t.Errorf("%d are idle after a panic", n)
	}
	tabletest.Changes(t, s, ports.ChangesQuery{Family: ports.Queue})
}

func TestSnapshotsAreFewAndWhoWaitsCanGiveUp(t *testing.T) {
	t.Parallel()
	s := ready(t)
	release, done := make(chan struct{}), make(chan error)
	held := make(chan struct{})
	for range maxSnapshots {
		go func() {
			done <- s.file.snapshots.view(context.Background(), func(*reading) error {
				held <- struct{}{}
				<-release
				return nil
			})
		}()
		<-held
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Changes(ctx, ports.ChangesQuery{Family: ports.Queue}); ports.CodeOf(err) != ports.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
	close(release)
	for range maxSnapshots {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	tabletest.Changes(t, s, ports.ChangesQuery{Family: ports.Queue})
}
