package e2e_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"holdfast/adapters/postgres"
	"holdfast/adapters/sqlite"
	"holdfast/internal/pgtest"
	"holdfast/ports"
)

// stores are the local stores that the whole host is tried on in this process.
var stores = map[string]func(t *testing.T) ports.LocalStore{
	"memory": func(*testing.T) ports.LocalStore { return newMemory() },
	"sqlite": func(t *testing.T) ports.LocalStore {
		s := sqlite.New()
		t.Cleanup(func() { _ = s.Close() })
		err := s.Configure(t.Context(), ports.Configuration{Name: "local", DataDir: t.TempDir(), Options: json.RawMessage(`{"path":"history.db"}`)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	},
	"postgres": func(t *testing.T) ports.LocalStore {
		s := postgres.New()
		dsn := pgtest.Shared(t).Database(t)
		t.Cleanup(func() { _ = s.Close() })
		if err := s.Configure(t.Context(), ports.Configuration{Name: "local", Options: fmt.Appendf(nil, `{"dsn":%q}`, dsn)}); err != nil {
			t.Fatal(err)
		}
		return s
	},
}

// onEach runs a test on each store.
func onEach(t *testing.T, test func(t *testing.T, store ports.LocalStore)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}
