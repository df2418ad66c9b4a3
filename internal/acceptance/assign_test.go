package acceptance

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/internal/e2e"
)

// keeper is a host under load whose history a databeacon keeps, whatever happens to that.
type keeper struct {
	*testing.T
	host *e2e.Host
	live *e2e.Workload
}

// soon is how late the status may be behind the evidence: the two seconds that are promised, and the slowness of a busy machine.
const soon = 3 * time.Second

func (k *keeper) databeacon(name string, connections int) *databeacon {
	return openDatabeacon(k.T, k.host, stock.Options{Name: name}, connections)
}

func (k *keeper) assign(beacon string, connection int64, families ...string) {
	k.Helper()
	if len(families) == 0 {
		must(k.T, k.host, "assign", beacon, fmt.Sprint(connection))
	}
	for _, f := range families {
		must(k.T, k.host, "assign", beacon, fmt.Sprint(connection), "--family", f)
	}
}

func (k *keeper) is(beacon, state string) {
	k.Helper()
	within := soon
	if state == "bootstrapped" {
		within = patience // it has tables to make
	}
	keeping(k.T, k.host, within, beacon, state)
}

// kept lets the callers write on for a while, so that some of it is copied.
func (k *keeper) kept(d *databeacon, connection int64) {
	k.Helper()
	e2e.Await(k.T, "a copy of what is written", func() error {
		s, err := k.host.Status(k.Context())
		for _, b := range s.Backends {
			for _, f := range b.Followers {
				if f.Position == 0 || f.Phase != "ready" && f.Phase != "lagging" {
					err = fmt.Errorf("%+v", f)
				}
			}
		}
		return err
	})
	if d.rows(k.T, connection, "UVQueueWorkItem") == 0 {
		k.Error("nothing is copied")
	}
}

// untouched says that no table of ours is in a database.
func (k *keeper) untouched(d *databeacon, connection int64) {
	k.Helper()
	var n int
	if err := d.Database(connection).QueryRowContext(k.Context(), "SELECT count(*) FROM sqlite_master WHERE name LIKE 'UV%'").Scan(&n); err != nil || n != 0 {
		k.Errorf("%d tables of ours are in a database that nobody assigned (%v)", n, err)
	}
}

// frozen notes what a database has, and gives what says that it has not got more since.
func (k *keeper) frozen(d *databeacon, connection int64) (check func()) {
	k.Helper()
	had := d.rows(k.T, connection, "UVQueueWorkItemEvent")
	return func() {
		k.Helper()
		if has := d.rows(k.T, connection, "UVQueueWorkItemEvent"); has != had {
			k.Errorf("a database that is not assigned any more got %d events", has-had)
		}
	}
}

func TestHistoryIsKeptBehindWhatIsAssignedWhateverHappensToIt(t *testing.T) {
	t.Parallel()
	for name, scene := range map[string]func(k *keeper){
		"assigned before it exists": func(k *keeper) {
			k.is("", "unassigned")
			k.assign("databeacon", 1)
			k.is("databeacon", "waiting-for-beacon")
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
		},
		"it comes back under another BeaconID": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			old := d.id()
			k.assign(old, 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			d.leave(k.T)
			k.is("databeacon", "waiting-for-beacon")
			d.join(k.T)
			if d.id() == old {
				k.Errorf("its BeaconID is still %s", old)
			}
			k.is("databeacon", "bootstrapped")
		},
		"the host is started again, in order and not": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			k.host.Stop(k.T)
			k.host.Restart(k.T)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			k.host.Kill()
			k.host.Gone(k.T)
			k.host.Restart(k.T)
			k.is("databeacon", "bootstrapped")
		},
		"another connection is assigned": func(k *keeper) {
			d := k.databeacon("databeacon", 2)
			d.join(k.T)
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			k.untouched(d, 2)
			k.assign("databeacon", 2)
			k.is("databeacon", "bootstrapped")
			stays := k.frozen(d, 1)
			k.kept(d, 2)
			stays()
		},
		"its database is wiped": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			empty := filepath.Join(k.TempDir(), "empty.sqlite")
			if err := d.Copy(1, empty); err != nil {
				k.Fatal(err)
			}
			d.join(k.T)
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			if err := d.Replace(1, empty); err != nil {
				k.Fatal(err)
			}
		},
		"an older copy is put in the place of its database": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			older := filepath.Join(k.TempDir(), "older.sqlite")
			if err := d.Copy(1, older); err != nil {
				k.Fatal(err)
			}
			for range 3 {
				<-time.After(time.Second)
				if err := d.Replace(1, older); err != nil {
					k.Fatal(err)
				}
			}
		},
		"the second of two is assigned": func(k *keeper) {
			one, two := k.databeacon("one", 2), k.databeacon("two", 2)
			one.join(k.T)
			two.join(k.T)
			k.assign("two", 2)
			k.is("two", "bootstrapped")
			k.kept(two, 2)
			for _, other := range []int64{1, 2} {
				k.untouched(one, other)
			}
			k.untouched(two, 1)
		},
		"it is cleared, and assigned again": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 1)
			must(k.T, k.host, "assign", "--clear")
			k.is("", "unassigned")
			stays := k.frozen(d, 1)
			<-time.After(2 * time.Second)
			k.is("", "unassigned")
			stays()
			k.assign("databeacon", 1)
			k.is("databeacon", "bootstrapped")
		},
		"it is started again": func(k *keeper) {
			d := k.databeacon("databeacon", 1)
			d.join(k.T)
			k.assign("databeacon", 1)
			for range 3 {
				k.is("databeacon", "bootstrapped")
				k.kept(d, 1)
				d.die()
				k.is("databeacon", "waiting-for-beacon")
				d.Restart()
				d.join(k.T)
			}
			k.is("databeacon", "bootstrapped")
		},
		"the families are kept apart": func(k *keeper) {
			one, two := k.databeacon("one", 1), k.databeacon("two", 1)
			one.join(k.T)
			two.join(k.T)
			k.assign("one", 1, "queue")
			k.assign("two", 1, "manifest")
			e2e.Await(k.T, "both are kept", func() error {
				both := persistence(k.T, k.host)
				if q, m := both[0], both[1]; q.State != "bootstrapped" || m.State != "bootstrapped" || *q.AssignedBeaconID != "one" || *m.AssignedBeaconID != "two" {
					return fmt.Errorf("%+v", both)
				}
				return nil
			})
			k.kept(one, 1)
		},
		"it offers itself by its tag": func(k *keeper) {
			d := k.databeacon("databeacon", 2)
			d.tags = map[string]any{"PersistenceConnectionID": "2"}
			d.join(k.T)
			k.is("databeacon", "bootstrapped")
			k.kept(d, 2)
			k.untouched(d, 1)
			if out := must(k.T, k.host, "status"); !strings.Contains(out, "databeacon (by its tag)") {
				k.Errorf("the status says\n%s", out)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			host := e2e.StartWith(t, keptBehind())
			k := &keeper{T: t, host: host, live: e2e.StartWorkload(t, host.Client(), 150*time.Millisecond)}
			scene(k)
			k.live.End()
			k.live.Client.Settle(t)
			host.AwaitEqual(t)
			host.Verify(t, "local", "databeacon")
			k.live.Client.Answered()
			k.live.Check()
			if by := k.live.Client.Answered(); by["databeacon"] == 0 {
				t.Errorf("reads are answered by %v, and none by the databeacon", by)
			}
			if s := passed(t, host); lost(s) != 0 {
				t.Errorf("a lost range is told: %+v", s.Families)
			}
			t.Logf("%d writes, slowest answer %s", k.live.Writes, k.live.Slowest.Round(time.Millisecond))
		})
	}
}

func TestAStockToolAssignsByNameAndPolls(t *testing.T) {
	t.Parallel()
	host := e2e.StartWith(t, keptBehind())
	d := openDatabeacon(t, host, stock.Options{Name: "lab databeacon"}, 1)
	d.join(t)
	code, answer := assigned(t, host, `{"BeaconID":"lab databeacon","IDBeaconConnection":1}`)
	if code != http.StatusOK || !strings.HasPrefix(answer, `{"Success":true,"Queue":{"State":"waiting-for-beacon","AssignedBeaconID":"lab databeacon"`) {
		t.Fatalf("it is answered %d %s", code, answer)
	}
	keeping(t, host, patience, "lab databeacon", "bootstrapped")
	if q := persistence(t, host)[0]; q.IDBeaconConnection != 1 || q.LastError != nil || q.BootstrappedAt == nil || q.AssignedAt == nil {
		t.Errorf("it is told as %+v", q)
	}
	if code, answer = assigned(t, host, `{"BeaconID":null}`); code != http.StatusOK {
		t.Errorf("to clear is answered %d %s", code, answer)
	}
	keeping(t, host, soon, "", "unassigned")
	bare := e2e.Start(t) // without a block for it
	if code, answer = assigned(t, bare, `{"BeaconID":"d","IDBeaconConnection":"1"}`); code != http.StatusOK {
		t.Errorf("a host without a backend for it answers %d %s", code, answer)
	}
	if q := persistence(t, bare)[0]; q.State != "error" || q.LastError == nil || !strings.Contains(*q.LastError, `backend "meadowproxy" "databeacon" {}`) {
		t.Errorf("it is told as %+v", q)
	}
}
