package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// A copy between two backends survives whoever runs it.

// foreign is a SQLite file with the history of another host.
func foreign(t *testing.T, fill func(y *history)) map[string][]byte {
	t.Helper()
	return foreignWith(t, "", fill)
}

// foreignWith is foreign of a host with a configuration.
func foreignWith(t *testing.T, config string, fill func(y *history)) map[string][]byte {
	t.Helper()
	stranger := e2e.StartWith(t, e2e.Setup{Config: config})
	theirs := historyOf(t, stranger)
	fill(theirs)
	theirs.client.Settle(t)
	stranger.Stop(t)
	return store(t, stranger.File("local"))
}

// stream sends lines that must all be taken.
func (y *history) stream(name string, lines []byte) {
	y.Helper()
	answers, err := y.client.Stream(y.Context(), name, bytes.NewReader(lines))
	if err != nil {
		y.Fatal(err)
	}
	for i, a := range answers {
		if !a.Success {
			y.Fatalf("line %d is answered %d %s: %s", i+1, a.Status, a.Code, a.Reason)
		}
	}
	if _, err := y.model.Ingest(name, bytes.NewReader(lines)); err != nil {
		y.Fatal(err)
	}
}

// records is a stream of n new records of every kind.
func records(n int) []byte {
	var lines bytes.Buffer
	for i := range n {
		key := fmt.Sprintf("foreign-%d", i/5)
		action, settings := "", ""
		switch i % 5 {
		case 0:
			action, settings = "QP_UpsertWorkItem", fmt.Sprintf(`{"WorkItem":{"WorkItemHash":%q,"Status":"Complete","Settings":{"n":%d}}}`, key, i)
		case 1, 2:
			action, settings = "QP_AppendEvent", fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventType":"t","Payload":{"n":%d}}}`, key, i)
		case 3:
			action, settings = "QP_InsertAttempt", fmt.Sprintf(`{"Attempt":{"WorkItemHash":%q,"AttemptNumber":1,"BeaconID":"b-%d"}}`, key, i)
		case 4:
			action, settings = "MS_UpsertManifest", fmt.Sprintf(`{"Manifest":{"Hash":%q,"Output":[ %d ]}}`, key, i)
		}
		lines.Write(append(e2e.Line(action, json.RawMessage(settings)), '\n'))
	}
	return lines.Bytes()
}

// size is how many bytes a backend's files have.
func size(h *e2e.Host, name string) (bytes int64) {
	for _, suffix := range []string{"", "-wal"} {
		if info, err := os.Stat(h.File(name) + suffix); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

func TestACopyGoesOnWhereTheDeathOfItsClientOrItsHostInterruptedIt(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("copies many records")
	}
	n := rounds(20_000)
	files := foreign(t, func(y *history) { y.stream("foreign", records(n)) })
	m := startMirrored(t, "from", "to")
	m.write("ours", false)
	m.host.AwaitCopied(t)
	m.host.Stop(t)
	place(t, m.host.File("from"), files)
	m.host.Restart(t)
	m.host.AwaitCopied(t)

	interrupted, step := 0, size(m.host, "from")/5
	for deadline := time.Now().Add(2 * time.Minute); interrupted < 3 && time.Now().Before(deadline); {
		copying := m.begin("copy", "--from", "from", "--to", "to")
		if copying.endsBefore(func() bool { return copying.grown("to") > step }) {
			if copying.err == nil {
				break
			}
			continue // the host has not noticed yet that the client before it died
		}
		if interrupted%2 == 0 {
			_ = copying.Process.Kill() // it may have ended at this moment
		} else {
			m.host.Kill()
		}
		<-copying.ended
		if interrupted%2 == 1 {
			m.host.Restart(t)
		}
		interrupted++
	}
	if interrupted == 0 {
		t.Fatal("no copy could be interrupted")
	}
	e2e.Await(t, "the copy is taken up again", func() error { // the host may not have noticed yet that a client died
		out, code := m.host.Run(t, "copy", "--from", "from", "--to", "to")
		if code != 0 {
			return fmt.Errorf("exit code %d: %s", code, out)
		}
		t.Logf("interrupted %d times; then: %s", interrupted, out)
		return nil
	})
	m.host.Verify(t, "from", "to")
	m.host.Stop(t)
	if has := m.rows("to"); has < n {
		t.Errorf("the target has %d records, want the source's %d and its own", has, n)
	}
}

// command is a command of holdfast that runs beside a host.
type command struct {
	*exec.Cmd
	host  *e2e.Host
	sizes map[string]int64 // of the backends when it began
	out   bytes.Buffer
	ended chan struct{}
	err   error
}

func (m *mirrored) begin(args ...string) *command {
	m.Helper()
	c := &command{Cmd: m.host.Beside(args...), host: m.host, sizes: map[string]int64{"to": size(m.host, "to")}, ended: make(chan struct{})}
	c.Stdout, c.Stderr = &c.out, &c.out
	if err := c.Start(); err != nil {
		m.Fatal(err)
	}
	go func() { c.err = c.Wait(); close(c.ended) }()
	return c
}

// grown is by how many bytes a backend's files have grown since the command began.
func (c *command) grown(name string) int64 { return size(c.host, name) - c.sizes[name] }

// endsBefore waits until something is true, and says whether the command ended before.
func (c *command) endsBefore(is func() bool) bool {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-c.ended:
			return true
		case <-tick.C:
		}
	}
	return false
}
