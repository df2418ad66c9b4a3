package postgres

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/internal/pgtest"
	"holdfast/ports"
)

func TestAStoreOnTables(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, engine)
}

var engine = &tabletest.Engine{
	Places: func(t testing.TB) func(tabletest.Failer) tabletest.Place {
		dsn := pgtest.Shared(t).Database(t)
		look := session(t, dsn)
		made := false
		return func(t tabletest.Failer) tabletest.Place {
			if made {
				empty(t, look)
			}
			made = true
			return func(t tabletest.Failer) tabletest.Store {
				t.Helper()
				b := New()
				if err := b.Configure(context.Background(), ports.Configuration{Options: fmt.Appendf(nil, `{"dsn":%q,"pool":2}`, dsn)}); err != nil {
					t.Fatal(err)
				}
				return b
			}
		}
	},
	Stamps: func(t tabletest.Failer, s tabletest.Store, k ports.Kind, key string, number int64) (stamps string) {
		t.Helper()
		table := ports.TableOf(k)
		text, args := `SELECT "Stamps" FROM "`+table.Name+`" WHERE "`+table.Key+`" = $1`, []any{key}
		if k == ports.KindAttempt {
			text, args = text+` AND "AttemptNumber" = $2`, append(args, number)
		}
		reads(t, s, func(ctx context.Context, r *reading) (err error) {
			stamps, err = r.word(ctx, text, args...)
			return err
		})
		return stamps
	},
	Tombstones: func(t tabletest.Failer, s tabletest.Store) (rows []ports.Row) {
		t.Helper()
		reads(t, s, func(ctx context.Context, r *reading) error {
			rows = nil
			return r.query(ctx, `SELECT "Kind", "Key", "ChangeHost", "ChangeSeq" FROM "UVGone"`, func(row []any) error {
				rows = append(rows, ports.Row{
					Kind: ports.Kind(row[0].(string)), Key: row[1].(string), Gone: true,
					Change: ports.Change{Host: row[2].(string), Seq: uint64(row[3].(int64))},
				})
				return nil
			})
		})
		return rows
	},
	SetMark: func(t tabletest.Failer, s tabletest.Store, f ports.Family, host string, seq uint64) {
		t.Helper()
		d, err := s.(*Backend).open(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		_, err = inTransaction(context.Background(), d, "test", forGood, func(ctx context.Context, r *reading) (struct{}, error) {
			return struct{}{}, setWord(ctx, r.conn, tables.KeyMark(f, host), fmt.Sprintf(`{"Epoch":"e","Seq":%d}`, seq))
		})
		if err != nil {
			t.Fatal(err)
		}
	},
	LimitSearch: func(s tabletest.Store, d time.Duration) { s.(*Backend).searchLimit = d },
	LimitGraves: func(t tabletest.Failer, s tabletest.Store, n int64) {
		t.Helper()
		w := s.(*Backend).work
		if err := w.do(context.Background(), false, func() error { w.graves = n; return nil }); err != nil {
			t.Fatal(err)
		}
	},
	Items: 600, Events: 5000, Writes: 600, Rounds: 4, Batches: 4,
}

func reads(t tabletest.Failer, s tabletest.Store, read func(ctx context.Context, r *reading) error) {
	t.Helper()
	d, err := s.(*Backend).open(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	_, err = view(context.Background(), d, "test", func(ctx context.Context, r *reading) (struct{}, error) { return struct{}{}, read(ctx, r) })
	if err != nil {
		t.Fatal(err)
	}
}

// empty leaves tables as they are made.
func empty(t tabletest.Failer, look *pgx.Conn) {
	for _, table := range []string{"UVQueueWorkItem", "UVQueueWorkItemEvent", "UVQueueWorkItemAttempt", "UVManifest", "UVGone", "UVEarly", "UVHoldfast"} {
		text := `DELETE FROM "` + table + `"`
		if table == "UVHoldfast" {
			text += ` WHERE "Key" NOT IN ('StoreID', 'Schema')`
		}
		if _, err := look.Exec(context.Background(), text); err != nil {
			t.Fatal(err)
		}
	}
}
