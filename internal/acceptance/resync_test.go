package acceptance

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What an operator does about a follower that somebody else wrote to: copy everything again, and remove what only it has.

// meddle changes rows in a store's file and takes some away, as nobody should; the host is down, or the store held.
func (m *mirrored) meddle(name string) {
	m.Helper()
	db, err := sql.Open("sqlite", m.host.File(name))
	if err != nil {
		m.Fatal(err)
	}
	defer db.Close()
	for _, statement := range []string{
		`UPDATE UVQueueWorkItem SET Status = 'Meddled' WHERE rowid % 3 = 0`,
		`UPDATE UVQueueWorkItemEvent SET Payload = '"meddled"' WHERE rowid % 5 = 0`,
		`DELETE FROM UVQueueWorkItemAttempt WHERE rowid % 4 = 0`,
	} {
		got, err := db.Exec(statement)
		if err != nil {
			m.Fatalf("%s: %v", statement, err)
		}
		if n, err := got.RowsAffected(); err != nil || n == 0 {
			m.Fatalf("%s: %d rows, %v", statement, n, err)
		}
	}
}

// held has something done to the mirror's file while its process is away.
func (m *mirrored) held(do func()) {
	m.Helper()
	m.host.Hold(m.T, "mirror")
	do()
	m.host.Free(m.T, "mirror")
	m.host.AwaitEqual(m.T)
}

func TestAResyncCopiesEverythingAgainAndRemovesNothing(t *testing.T) {
	t.Parallel()
	again := forgotten(t)
	files := foreign(t, func(y *history) { y.stream("foreign", records(50)) })
	m := startMirrored(t, "mirror")
	m.write("ours", false)
	m.change("many", 500)
	m.host.AwaitEqual(t)

	// Rows that are wrong, behind the position.
	m.held(func() { m.meddle("mirror") })
	if v := m.host.Compared(t, "local", "mirror"); v.Different == 0 || v.OnlyA == 0 {
		t.Errorf("nobody sees that the mirror is wrong: %+v", v)
	}
	must(t, m.host, "resync", "mirror")
	m.host.AwaitEqual(t)
	m.equal("mirror")

	// Rows that only the mirror has.
	m.host.Stop(t)
	place(t, m.host.File("mirror"), files)
	m.host.Restart(t)
	m.host.AwaitEqual(t)
	must(t, m.host, "resync", "mirror")
	m.host.AwaitEqual(t)
	if v := m.host.Compared(t, "local", "mirror"); v.OnlyB != 50 || v.OnlyA+v.Different != 0 {
		t.Errorf("%d are only in the mirror, want 50: %+v", v.OnlyB, v)
	}
	for _, wrong := range []string{"0", "49", "51"} {
		if out, code := m.host.Run(t, "resync", "mirror", "--exact", "--confirm", wrong); code == 0 || !strings.Contains(out, "50") {
			t.Errorf("confirming %s: exit code %d, %s", wrong, code, out)
		}
	}
	if v := m.host.Compared(t, "local", "mirror"); v.OnlyB != 50 {
		t.Errorf("after wrong counts %d are only in the mirror, want 50", v.OnlyB)
	}
	if out, code := m.host.Run(t, "resync", "mirror", "--exact"); code == 0 || !strings.Contains(out, "--confirm 50") {
		t.Errorf("without a count: exit code %d, %s", code, out)
	}
	must(t, m.host, "resync", "mirror", "--exact", "--confirm", "50")
	m.equal("mirror")

	again.equal("mirror")
}

// forgotten is a host that was started after a person took its mirror out of the file beside state.db, which means the same
// as a resync. It waits for a minute, since nobody knows how the host before it ended.
func forgotten(t *testing.T) *mirrored {
	t.Helper()
	m := startMirrored(t, "mirror")
	m.write("ours", false)
	m.change("many", 500)
	m.host.AwaitEqual(t)
	m.host.Stop(t)
	m.meddle("mirror")
	m.forget("mirror")
	m.host.Restart(t)
	return m
}

// forget takes a backend's entries out of the file that people may edit.
func (m *mirrored) forget(name string) {
	m.Helper()
	path := filepath.Join(m.host.Data(), "persistence-bridge-hwm.json")
	text, err := os.ReadFile(path)
	if err != nil {
		m.Fatal(err)
	}
	var marks map[string]map[string]json.RawMessage
	if err := json.Unmarshal(text, &marks); err != nil {
		m.Fatalf("%s: %v", text, err)
	}
	for family, known := range marks {
		if _, is := known[name]; !is {
			m.Fatalf("%s has no entry of %s: %s", family, name, text)
		}
		delete(known, name)
	}
	if text, err = json.Marshal(marks); err != nil {
		m.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		m.Fatal(err)
	}
}
