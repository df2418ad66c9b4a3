package mesh

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/journal"
	"holdfast/adapters/sqlite"
	"holdfast/core"
	"holdfast/ports"
)

// history is a whole core over a SQLite file, for hubs that record and read.
func history(t *testing.T) *core.Host {
	t.Helper()
	dir := t.TempDir()
	store := sqlite.New()
	options, err := json.Marshal(map[string]any{"path": "history.db"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Configure(context.Background(), ports.Configuration{Name: "local", DataDir: dir, Options: options}); err != nil {
		t.Fatal(err)
	}
	state, err := journal.OpenState(dir, journal.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	journals := map[ports.Family]ports.Journal{}
	for _, f := range ports.Families {
		if journals[f], err = journal.Open(journal.Options{Dir: dir, Family: f}); err != nil {
			t.Fatal(err)
		}
	}
	host, err := core.New(core.Config{
		Version: "test", Ack: core.AckLocal, State: state, Journals: journals, Logger: hclog.NewNullLogger(),
		Local: core.Local{Name: "local", Kind: "sqlite", Store: store, Health: func() core.Health { return core.Health{Running: true} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, j := range journals {
			_ = j.Close()
		}
		_ = state.Close()
		_ = store.Close()
	})
	eventually(t, "a host that is ready", func() bool { return host.Ready() == nil })
	return host
}

// rows reads a list of an answer.
func rows(t *testing.T, a core.Answer) (list []map[string]any) {
	t.Helper()
	if !a.Success() {
		t.Fatalf("a read failed: %v", a.Err)
	}
	if len(a.Value) > 0 {
		if err := json.Unmarshal(a.Value, &list); err != nil {
			t.Fatal(err)
		}
	}
	return list
}
