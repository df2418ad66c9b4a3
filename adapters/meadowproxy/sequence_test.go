package meadowproxy

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func TestAnAssignmentMayComeBeforeItsDatabeacon(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.becomes("unassigned")
	s.writes("first", 20)
	s.assign("db", 1)
	s.becomes("waiting-for-beacon")
	s.writes("second", 20)
	s.databeacon("db", 1)
	s.becomes("bootstrapped")
	s.equal()
}

func TestADatabeaconThatFailsAtAnyStepIsBootstrappedInTheEnd(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"IntrospectSchema", "EnsureSchema", "Introspect", "UpdateProxyConfig", "ListConnections", "EnableEndpoint", "Request"} {
		for _, gone := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, gone %v", step, gone), func(t *testing.T) {
				t.Parallel()
				s := play(t)
				s.writes("early", 5)
				db := s.databeacon("db", 1)
				db.Fault(func(_, action string, _ json.RawMessage) (string, bool) {
					if action == step && gone {
						s.mesh.Disconnect("db")
					}
					return "no", action == step
				})
				s.assign("db", 1)
				s.eventually("a failure that is told", func() bool {
					w := s.follower(ports.Queue)
					said := w.Detail + w.LastError
					return w.State != "bootstrapped" && (gone && strings.Contains(said, "not connected") || !gone && strings.Contains(said, "tried again"))
				})
				s.writes("late", 5)
				db.Fault(nil)
				if gone {
					s.mesh.Connect(db)
				}
				s.equal()
			})
		}
	}
}

func TestARestartedDatabeaconIsBootstrappedAgainUnderLoad(t *testing.T) {
	t.Parallel()
	s := play(t)
	db := s.databeacon("db", 1)
	s.assign("db", 1)
	s.becomes("bootstrapped")
	for range 4 {
		end := s.load("load")
		s.caughtUpOnce()
		s.mesh.Disconnect("db")
		db.Restart()
		s.mesh.Connect(db) // with another id
		end()
	}
	s.equal()
}

// caughtUpOnce waits until something more has arrived.
func (s *stage) caughtUpOnce() {
	s.t.Helper()
	was := s.follower(ports.Queue).Copied
	s.eventually("more of it", func() bool { return s.follower(ports.Queue).Copied > was })
}

func TestADatabeaconThatForgotWhileItIsConnectedIsBootstrappedAgain(t *testing.T) {
	t.Parallel()
	s := play(t)
	db := s.databeacon("db", 1)
	s.assign("db", 1)
	s.becomes("bootstrapped")
	s.writes("before", 10)
	s.equal()
	db.Restart() // nobody in the mesh notices
	s.writes("after", 10)
	s.equal()
}

func TestAfterAReassignmentUnderLoadNothingMoreComesToTheOldDatabase(t *testing.T) {
	t.Parallel()
	s := play(t)
	db := s.databeacon("db", 3)
	s.assign("db", 1)
	s.becomes("bootstrapped")
	for round, to := range []int64{2, 3, 1, 2} {
		prefix := fmt.Sprintf("round%d", round)
		end := s.load(prefix)
		s.caughtUpOnce()
		s.assign("db", to)
		end()
		s.eventually("the new one is taken", func() bool { return s.bound(ports.Queue).connection == to && s.bound(ports.Manifest).connection == to })
		late := fmt.Sprintf("late%d", round)
		s.writes(late, 20)
		s.equal()
		for connection := int64(1); connection <= 3; connection++ {
			if has := s.like0(db, connection, late); has > 0 != (connection == to) {
				t.Errorf("round %d: connection %d has %d rows of what came after it was assigned to %d", round, connection, has, to)
			}
		}
	}
}

// bound is the seat that a family has.
func (s *stage) bound(f ports.Family) seat {
	h, err := s.backend.half(f)
	if err != nil {
		s.t.Fatal(err)
	}
	h.binder.mu.Lock()
	defer h.binder.mu.Unlock()
	if at := h.binder.holds[f]; at != nil {
		return at.bound.seat
	}
	return seat{}
}

// like0 is like, where the tables may not be there.
func (s *stage) like0(db *stock.Databeacon, connection int64, prefix string) int {
	s.t.Helper()
	if len(tables(s.t, db.Database(connection))) == 0 {
		return 0
	}
	return s.like(db, connection, prefix)
}

func tables(t *testing.T, db *sql.DB) (names []string) {
	t.Helper()
	rows, err := db.Query(`SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'UV%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return names
}

func TestFamiliesMayBeKeptApartAndMoveAlone(t *testing.T) {
	t.Parallel()
	s := play(t)
	one, two := s.databeacon("one", 1), s.databeacon("two", 1)
	s.mesh.Assign(ports.Queue, "one", 1)
	s.mesh.Assign(ports.Manifest, "two", 1)
	s.becomes("bootstrapped")
	s.writes("apart", 20)
	s.equal()
	if q, m := count(t, one.Database(1), ports.Items.Name), count(t, one.Database(1), ports.Manifests.Name); q != 20 || m != 0 {
		t.Errorf("the first has %d items and %d manifests", q, m)
	}
	if q, m := count(t, two.Database(1), ports.Items.Name), count(t, two.Database(1), ports.Manifests.Name); q != 0 || m != 20 {
		t.Errorf("the second has %d items and %d manifests", q, m)
	}
	s.mesh.Assign(ports.Manifest, "one", 1)
	s.eventually("the manifests have moved", func() bool { return s.bound(ports.Manifest).beacon == "one" })
	s.writes("together", 5)
	s.equal()
	if q, m := count(t, one.Database(1), ports.Items.Name), count(t, one.Database(1), ports.Manifests.Name); q != 25 || m != 25 {
		t.Errorf("the first has %d items and %d manifests", q, m)
	}
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRow(fmt.Sprintf(`SELECT count(*) FROM %q`, table)).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestOfTwoDatabeaconsOnlyTheAssignedOneIsTouched(t *testing.T) {
	t.Parallel()
	s := play(t)
	first := s.databeacon("first", 1)
	s.databeacon("second", 1)
	s.assign("second", 1)
	s.becomes("bootstrapped")
	s.writes("one", 20)
	s.equal()
	if names := tables(t, first.Database(1)); len(names) > 0 {
		t.Errorf("the first has the tables %q", names)
	}
}

// replacements put another database in the place of the one that is assigned, while the databeacon goes on.
var replacements = map[string]func(t *testing.T, db *stock.Databeacon, older string){
	"emptied": func(t *testing.T, db *stock.Databeacon, _ string) {
		t.Helper()
		for _, table := range tables(t, db.Database(1)) {
			execute(t, db.Database(1), fmt.Sprintf(`DELETE FROM %q`, table))
		}
	},
	"dropped": func(t *testing.T, db *stock.Databeacon, _ string) {
		t.Helper()
		for _, table := range tables(t, db.Database(1)) {
			execute(t, db.Database(1), fmt.Sprintf(`DROP TABLE %q`, table))
		}
	},
	"set back": func(t *testing.T, db *stock.Databeacon, older string) {
		t.Helper()
		if err := db.Replace(1, older); err != nil {
			t.Fatal(err)
		}
	},
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

func TestADatabaseThatWasReplacedIsFoundOutAndFilled(t *testing.T) {
	t.Parallel()
	for name, replace := range replacements {
		for _, restarts := range []bool{false, true} {
			for _, busy := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s, restarts %v, busy %v", name, restarts, busy), func(t *testing.T) {
					t.Parallel()
					s := play(t)
					db := s.databeacon("db", 1)
					s.assign("db", 1)
					s.becomes("bootstrapped")
					s.writes("old", 20)
					s.equal()
					older := filepath.Join(t.TempDir(), "older.sqlite")
					execute(t, db.Database(1), fmt.Sprintf(`VACUUM INTO '%s'`, older))
					if _, err := os.Stat(older); err != nil {
						t.Fatal(err)
					}
					s.writes("new", 20)
					s.equal()
					end := func() {}
					if busy {
						end = s.load("load")
						s.caughtUpOnce()
					}
					if restarts {
						s.mesh.Disconnect("db")
					}
					replace(t, db, older)
					if restarts {
						db.Restart()
						s.mesh.Connect(db)
					}
					end()
					s.eventually("it is filled again", func() bool {
						return slices.Contains(tables(t, db.Database(1)), ports.Items.Name) && s.like(db, 1, "new") == 4*20
					})
					s.equal()
				})
			}
		}
	}
}

func TestClearedUnderLoadCallersNoticeNothing(t *testing.T) {
	t.Parallel()
	s := play(t)
	db := s.databeacon("db", 1)
	s.assign("db", 1)
	s.becomes("bootstrapped")
	end := s.load("load")
	s.caughtUpOnce()
	s.clear()
	s.becomes("unassigned")
	s.eventually("the holds are over", func() bool { return s.bound(ports.Queue) == seat{} && s.bound(ports.Manifest) == seat{} })
	s.writes("late", 20)
	end()
	if n := s.like(db, 1, "late"); n > 0 {
		t.Errorf("%d rows came after it was cleared", n)
	}
	s.assign("db", 1)
	s.equal()
}

func TestADatabeaconOfTheSameNameWithAnotherDatabaseIsAnotherStore(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.databeacon("db", 1)
	s.assign("db", 1)
	s.becomes("bootstrapped")
	end := s.load("load")
	s.caughtUpOnce()
	s.mesh.Disconnect("db")
	s.databeacon("db", 1)
	end()
	s.equal()
}
