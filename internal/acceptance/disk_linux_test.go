package acceptance

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	_ "modernc.org/sqlite"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// disk is a host on a disk of its own, and what it acknowledged.
type disk struct {
	*testing.T
	host   *e2e.Host
	client *e2e.Client
	next   int
	small  bool     // write without bodies
	acked  []string // hashes, in order
	pruned int      // acked[:pruned] may be gone if they are finished
}

func (d *disk) finished(i int) bool { return i%4 != 0 }

func (d *disk) settings() (hash string, settings []byte) {
	i := d.next
	d.next++
	hash = fmt.Sprintf("item-%05d", i)
	how := `"Status":"Running"`
	if d.finished(i) {
		now := time.Now().UTC().Format(time.RFC3339Nano)
		how = fmt.Sprintf(`"Status":"Complete","CompletedAt":%q,"LastEventAt":%q`, now, now)
	}
	size := 24 << 10
	if d.small {
		size = 0
	} else if !d.finished(i) {
		size = 2 << 10
	}
	return hash, item(hash, how+`,"Settings":"`+strings.Repeat("x", size)+`"`)
}

// fill writes until even a small write is refused because the disk is full.
func (d *disk) fill() {
	d.Helper()
	d.until()
	d.small = true
	d.until()
	d.small = false
}

func (d *disk) until() {
	d.Helper()
	for range 10_000 {
		hash, settings := d.settings()
		a, err := d.client.Send(d.Context(), "", "QP_UpsertWorkItem", settings)
		switch {
		case err != nil:
			d.Fatal(err)
		case a.Took > callerLimit:
			d.Errorf("a write took %s", a.Took)
		case a.Success:
			d.acked = append(d.acked, hash)
		case a.Code == "full" && a.Status == 507 && !a.Available && a.Reason != "":
			return
		default:
			d.Fatalf("a write is answered %d %s: %s", a.Status, a.Code, a.Reason)
		}
	}
	d.Fatal("the disk is never full")
}

// stream writes as NDJSON until a line is refused because the disk is full.
func (d *disk) stream() {
	d.Helper()
	for range 200 {
		var lines bytes.Buffer
		var hashes []string
		for range 50 {
			hash, settings := d.settings()
			hashes = append(hashes, hash)
			lines.Write(append(e2e.Line("QP_UpsertWorkItem", settings), '\n'))
		}
		answers, err := d.client.Stream(d.Context(), "", &lines)
		if err != nil || len(answers) != len(hashes) {
			d.Fatalf("%d answers to %d lines: %v", len(answers), len(hashes), err)
		}
		refused := false
		for i, a := range answers {
			switch {
			case a.Success:
				d.acked = append(d.acked, hashes[i])
			case a.Code == "full" && !a.Available:
				refused = true
			default:
				d.Fatalf("a line is answered %s: %s", a.Code, a.Reason)
			}
		}
		if refused {
			return
		}
	}
	d.Fatal("the disk is never full")
}

// goesOn writes a little, all of which must be taken.
func (d *disk) goesOn(after string) {
	d.Helper()
	passed(d.T, d.host) // what was accepted and waited goes first
	write := func() error {
		hash, settings := d.settings()
		a := d.client.Do(d.T, "QP_UpsertWorkItem", settings)
		if !a.Success {
			return fmt.Errorf("a write is answered %d %s: %s", a.Status, a.Code, a.Reason)
		}
		d.acked = append(d.acked, hash)
		return nil
	}
	began := time.Now()
	e2e.Await(d.T, "writes go on after "+after, write)
	if took := time.Since(began); took > 10*time.Second {
		d.Errorf("writes go on only %s after %s", took, after)
	}
	for range 40 {
		if err := write(); err != nil {
			d.Fatalf("after %s: %v", after, err)
		}
	}
}

// read reads what is surely decided: the first item, which is never finished.
func (d *disk) read() (e2e.Answer, error) {
	a, err := d.client.Get(d.Context(), "/v1/work-items/"+d.acked[0], nil)
	if err == nil && !a.Success {
		err = fmt.Errorf("a read is answered %d %s: %s", a.Status, a.Code, a.Reason)
	}
	return a, err
}

// reads checks that a full disk keeps nobody from reading, and that the status says what is wrong.
func (d *disk) reads() {
	d.Helper()
	if a, err := d.read(); err != nil || a.Took > callerLimit {
		d.Errorf("on a full disk a read takes %s: %v", a.Took, err)
	}
	list, err := d.client.Get(d.Context(), "/v1/work-items", nil)
	if err != nil || !list.Success || len(list.WorkItems) == 0 || list.Took > callerLimit {
		d.Errorf("on a full disk a list of %d takes %s and is answered %d: %s (%v)", len(list.WorkItems), list.Took, list.Status, list.Reason, err)
	}
	if s, err := d.host.Status(d.Context()); err != nil || s.Ready && len(s.Notices) == 0 {
		d.Errorf("the status of a full disk says nothing of it: %v", err)
	}
}

// holds checks that everything acknowledged is there, or was finished and pruned.
func (d *disk) holds() {
	d.Helper()
	passed(d.T, d.host)
	known := map[string]bool{}
	query := url.Values{"limit": {"500"}}
	for more := true; more; {
		a, err := d.client.Get(d.Context(), "/v1/work-items", query)
		if err != nil || !a.Success || a.Stale || a.Incomplete {
			d.Fatalf("a list is answered %d %s: %s (%v)", a.Status, a.Code, a.Reason, err)
		}
		for _, w := range a.WorkItems {
			known[model.MustParse(string(w)).Text("WorkItemHash")] = true
		}
		more = a.More
		query.Set("cursor", a.Cursor)
	}
	lost := 0
	for i, hash := range d.acked {
		var n int
		_, _ = fmt.Sscanf(hash, "item-%d", &n)
		if !known[hash] && (i >= d.pruned || !d.finished(n)) {
			lost++
		}
	}
	if lost > 0 {
		d.Errorf("%d of %d acknowledged writes are lost", lost, len(d.acked))
	}
}

func TestOnAFullDiskWritesAreRefusedReadsGoOnAndPruningAloneMakesRoom(t *testing.T) {
	if testing.Short() {
		t.Skip("fills a disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=32m"); err != nil {
		t.Skipf("a tmpfs of 32 MiB cannot be mounted here (it needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	data := filepath.Join(dir, "data")
	d := &disk{T: t, host: e2e.StartWith(t, e2e.Setup{Data: data})}
	d.client = d.host.Client()
	defer d.client.Close()

	for round := range rounds(1) {
		d.fill()
		d.reads()
		t.Logf("round %d: full after %d writes; %s", round, len(d.acked), must(t, d.host, "prune", "--older-than", "1ns"))
		d.pruned = len(d.acked)
		d.goesOn("pruning beside the host")
		d.holds()

		d.stream()
		d.fill()
		d.reads()
		d.host.Stop(t)
		t.Logf("round %d: full again after %d writes; %s", round, len(d.acked), must(t, d.host, "prune", "--older-than", "1ns"))
		d.pruned = len(d.acked)
		d.host.Restart(t)
		d.goesOn("pruning without the host")
		d.holds()

		d.fill()
		d.host.Kill()
		d.host.Launch(t)
		e2e.Await(t, "reads after a kill on a full disk", func() error {
			_, err := d.read()
			return err
		})
		e2e.Await(t, "prune after a kill on a full disk", func() error {
			if out, code := d.host.Run(t, "prune", "--older-than", "1ns"); code != 0 {
				return fmt.Errorf("exit code %d: %s", code, out)
			}
			return nil
		})
		d.pruned = len(d.acked)
		d.goesOn("a kill on a full disk, and pruning")
		d.holds()
	}
	d.host.Stop(t)

	db, err := sql.Open("sqlite", filepath.Join(data, "history.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("the integrity check says %q, %v", verdict, err)
	}
	if bad, _ := filepath.Glob(filepath.Join(data, "*", "*.corrupt-*")); len(bad) > 0 {
		t.Errorf("files were set aside: %v", bad)
	}
}
