package acceptance

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"holdfast/internal/e2e"
)

// A local store that lost what the journal no longer has gets it back from a follower, and no follower loses anything by it.

// trimmed writes until both journals have forgotten their beginnings.
func (m *mirrored) trimmed() {
	m.Helper()
	m.change("many", 1000)
	fill := strings.Repeat("x", 8<<10)
	for round := range 1000 {
		for _, w := range [][2]string{
			{"QP_UpsertWorkItem", string(item(fmt.Sprintf("large-%d", round), fmt.Sprintf(`"Status":"Running","Settings":%q`, fill)))},
			{"MS_UpsertManifest", fmt.Sprintf(`{"Manifest":{"Hash":"large-%d","Output":%q}}`, round, fill)},
		} {
			if a := m.client.Do(m.T, w[0], json.RawMessage(w[1])); !a.Success {
				m.Fatalf("%s is answered %d %s: %s", w[0], a.Status, a.Code, a.Reason)
			}
			m.model.Apply(w[0], json.RawMessage(w[1]))
		}
		if round%20 < 19 {
			continue
		}
		if s := passed(m.T, m.host); s.Families[0].Journal.First > 1 && s.Families[1].Journal.First > 1 {
			return
		}
	}
	m.Fatal("the journals are not trimmed")
}

// rows counts what a store's file has, with the host down.
func (m *mirrored) rows(name string) (n int) {
	m.Helper()
	db, err := sql.Open("sqlite", m.host.File(name))
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	err = db.QueryRow("SELECT (SELECT COUNT(*) FROM UVQueueWorkItem) + (SELECT COUNT(*) FROM UVQueueWorkItemEvent) + (SELECT COUNT(*) FROM UVQueueWorkItemAttempt) + (SELECT COUNT(*) FROM UVManifest)").Scan(&n)
	if err != nil {
		m.Fatal(err)
	}
	return n
}

// awaitMended waits until the local store is there again, and tells that nothing is lost.
func (m *mirrored) awaitMended() {
	m.Helper()
	if s := passed(m.T, m.host); lost(s) != 0 {
		m.Errorf("a lost range is told: %+v", s.Families)
	}
}

// localLosses are the ways in which a local store can lose what it had; prepare is called when little is written.
var localLosses = map[string]func(m *mirrored) map[string][]byte{
	"wiped": func(*mirrored) map[string][]byte { return nil },
	"an older copy": func(m *mirrored) map[string][]byte {
		m.host.Stop(m.T)
		older := store(m.T, m.host.File("local"))
		m.host.Restart(m.T)
		return older
	},
}

func startTrimmed(t *testing.T, prepare func(m *mirrored) map[string][]byte) (m *mirrored, files map[string][]byte) {
	t.Helper()
	m = startMirroredWith(t, "journal {\n  limit = \"512KiB\"\n}\n", "mirror")
	m.write("first", false)
	m.host.AwaitEqual(t)
	files = prepare(m)
	m.trimmed()
	m.write("second", false)
	m.host.AwaitEqual(t)
	return m, files
}

func TestALocalStoreThatLostWhatItsJournalForgotGetsItFromAFollower(t *testing.T) {
	t.Parallel()
	for name, prepare := range localLosses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, files := startTrimmed(t, prepare)
			m.host.Stop(t)
			had := m.rows("mirror")
			place(t, m.host.File("local"), files)
			m.host.Restart(t)
			m.awaitMended()
			m.equal("mirror")
			m.write("third", false)
			m.equal("mirror")

			// Once more, with the follower away at first.
			m.host.Hold(t, "mirror")
			m.write("fourth", false)
			m.host.Stop(t)
			if has := m.rows("mirror"); has < had {
				t.Errorf("the mirror had %d records and has %d", had, has)
			}
			place(t, m.host.File("local"), files)
			m.host.Launch(t)
			m.awaitNeeds("mirror")
			m.write("meanwhile", true)
			m.host.Free(t, "mirror")
			m.awaitMended()
			m.equal("mirror")
		})
	}
}

// awaitNeeds waits until the status says that the local store needs a follower, and holds a second start to the same.
func (m *mirrored) awaitNeeds(name string) {
	m.Helper()
	for round := range 2 {
		if round > 0 {
			m.host.Stop(m.T)
			m.host.Launch(m.T)
		}
		e2e.Await(m.T, "the status says who has what the local store lacks", func() error {
			s, err := m.host.Status(m.Context())
			if err != nil {
				return err
			}
			if b := s.Backends[0]; b.State != "error" || !strings.Contains(b.Remedy, name) || !strings.Contains(b.Remedy, "holdfast local accept") || s.Ready || len(s.Notices) == 0 {
				return fmt.Errorf("the local store is %s: %s; %s; ready %v, notices %q", b.State, b.Detail, b.Remedy, s.Ready, s.Notices)
			}
			return nil
		})
	}
}

func TestALocalStoreThatIsAcceptedWithoutWhatAFollowerHasTellsWhatIsLostAndTakesItLater(t *testing.T) {
	t.Parallel()
	for name, prepare := range localLosses {
		if name != "wiped" && rounds(1) == 1 {
			continue // the long tests have it
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, files := startTrimmed(t, prepare)
			m.host.Hold(t, "mirror")
			m.host.Stop(t)
			had := m.rows("mirror")
			place(t, m.host.File("local"), files)
			m.host.Launch(t)
			m.awaitNeeds("mirror")
			must(t, m.host, "local", "accept")
			m.client.Settle(t)
			if s := passed(t, m.host); lost(s) == 0 || !strings.Contains(strings.Join(s.Notices, "\n"), "lost") {
				t.Errorf("nothing is told as lost: %+v, %q", s.Families, s.Notices)
			}
			m.write("third", false)
			m.host.Free(t, "mirror")
			m.host.AwaitEqual(t)
			if v := m.host.Compared(t, "local", "mirror"); v.OnlyA != 0 || v.Different != 0 || v.OnlyB == 0 {
				t.Errorf("of %d records %d differ, %d are only in the local store, %d only in the mirror: %s", v.Compared, v.Different, v.OnlyA, v.OnlyB, v.Differences[:min(3, len(v.Differences))])
			}
			m.host.Stop(t)
			if has := m.rows("mirror"); has < had {
				t.Errorf("the mirror had %d records and has %d", had, has)
			}
			m.host.Restart(t)
			m.host.AwaitEqual(t)
			must(t, m.host, "adopt", "mirror")
			m.host.AwaitEqual(t)
			m.host.Verify(t, "local", "mirror")
			compareTheirs(t, m.client, m.model)
		})
	}
}
