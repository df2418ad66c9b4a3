package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestAStoreOnTables(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, engine)
}

var engine = &tabletest.Engine{
	Places: func(t testing.TB) func(tabletest.Failer) tabletest.Place {
		path := filepath.Join(t.TempDir(), "history.db")
		return func(t tabletest.Failer) tabletest.Place {
			t.Helper()
			for _, end := range []string{"", "-wal", "-shm"} {
				if err := os.Remove(path + end); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			return func(t tabletest.Failer) tabletest.Store {
				t.Helper()
				s := New()
				if err := s.Configure(context.Background(), ports.Configuration{Options: fmt.Appendf(nil, `{"path":%q}`, path)}); err != nil {
					t.Fatal(err)
				}
				return s
			}
		}
	},
	Stamps: func(t tabletest.Failer, s tabletest.Store, k ports.Kind, key string, number int64) (stamps string) {
		t.Helper()
		table := ports.TableOf(k)
		text, args := `SELECT "Stamps" FROM "`+table.Name+`" WHERE "`+table.Key+`" = ?`, []any{key}
		if k == ports.KindAttempt {
			text, args = text+` AND "AttemptNumber" = ?`, append(args, number)
		}
		if err := s.(*Store).file.readers.QueryRowContext(context.Background(), text, args...).Scan(&stamps); err != nil {
			t.Fatal(err)
		}
		return stamps
	},
	Tombstones: func(t tabletest.Failer, s tabletest.Store) (rows []ports.Row) {
		t.Helper()
		found, err := s.(*Store).file.readers.QueryContext(context.Background(), `SELECT "Kind", "Key", "ChangeHost", "ChangeSeq" FROM "UVGone"`)
		if err != nil {
			t.Fatal(err)
		}
		defer found.Close()
		for found.Next() {
			r := ports.Row{Gone: true}
			if err := found.Scan(&r.Kind, &r.Key, &r.Change.Host, &r.Change.Seq); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, r)
		}
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		return rows
	},
	SetMark: func(t tabletest.Failer, s tabletest.Store, f ports.Family, host string, seq uint64) {
		t.Helper()
		w := s.(*Store).work
		err := w.do(context.Background(), false, func() error {
			return w.transact("test", func() error { return setJSON(w.link, tables.KeyMark(f, host), ports.Mark{Epoch: "e", Seq: seq}) }, nil)
		})
		if err != nil {
			t.Fatal(err)
		}
	},
	LimitSearch: func(s tabletest.Store, d time.Duration) { s.(*Store).searchLimit = d },
	LimitGraves: func(t tabletest.Failer, s tabletest.Store, n int64) {
		t.Helper()
		w := s.(*Store).work
		if err := w.do(context.Background(), false, func() error { w.graves = n; return nil }); err != nil {
			t.Fatal(err)
		}
	},
	Items: 2000 / slowdown, Events: 20_000 / slowdown, Writes: 600 / slowdown,
	Rounds: max(8/slowdown, 2), Batches: max(4/slowdown, 2),
}
