package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// history writes to a host and to a model alike.
type history struct {
	*testing.T
	client *e2e.Client
	model  *model.Model
}

func historyOf(t *testing.T, h *e2e.Host) *history {
	client := h.Client()
	t.Cleanup(client.Close)
	return &history{T: t, client: client, model: model.New(model.Options{})}
}

// write writes some of everything; deferred says that nobody decides it now.
func (y *history) write(name string, deferred bool) (seq uint64) {
	y.Helper()
	for i := range 10 {
		hash := fmt.Sprintf("%s-%d", name, i)
		for _, w := range [][2]string{
			{"QP_UpsertWorkItem", string(item(hash, `"Status":"Running","EnqueuedAt":"2026-01-01T00:00:00Z"`))},
			{"QP_AppendEvent", fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventGUID":"%s-e","EventType":"dispatched"}}`, hash, hash)},
			{"QP_InsertAttempt", fmt.Sprintf(`{"Attempt":{"WorkItemHash":%q,"AttemptNumber":1,"BeaconID":"b"}}`, hash)},
			{"QP_UpdateWorkItem", fmt.Sprintf(`{"WorkItemHash":%q,"Patch":{"Status":"Complete","Result":{"n":%d.0}}}`, hash, i)},
			{"MS_UpsertManifest", fmt.Sprintf(`{"Manifest":{"Hash":"run-%s","Status":"Complete"}}`, hash)},
		} {
			a := y.client.Do(y.T, w[0], json.RawMessage(w[1]))
			if !a.Success || a.Deferred != deferred {
				y.Fatalf("%s is answered %d %+v", w[0], a.Status, a)
			}
			y.model.Apply(w[0], json.RawMessage(w[1]))
			if strings.HasPrefix(w[0], "QP_") {
				seq = a.Seq
			}
		}
	}
	return seq
}

func (y *history) settledAs(m *model.Model) {
	y.Helper()
	y.client.Settle(y.T)
	e2e.Compare(y.T, y.client, m)
}

// store is the database's files, each with its content.
func store(t testing.TB, path string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	found, _ := filepath.Glob(path + "*")
	for _, name := range found {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files[strings.TrimPrefix(name, path)] = text
	}
	return files
}

func place(t testing.TB, path string, files map[string][]byte) {
	t.Helper()
	old, _ := filepath.Glob(path + "*")
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for suffix, text := range files {
		if err := os.WriteFile(path+suffix, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func lost(s e2e.Status) (n uint64) {
	for _, f := range s.Families {
		for _, span := range f.Lost {
			n += span.To - span.From + 1
		}
	}
	return n
}

func TestAnOlderCopyOfTheStoreIsBroughtForwardFromTheJournal(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	y := historyOf(t, h)
	path := filepath.Join(h.Data(), "history.db")
	y.write("first", false)
	h.Stop(t)
	older := store(t, path)
	h.Restart(t)
	y.write("second", false)
	h.Stop(t)
	place(t, path, older)
	h.Restart(t)
	y.settledAs(y.model)
	if s := passed(t, h); lost(s) != 0 {
		t.Errorf("a lost range is told: %+v", s.Families)
	}
	y.write("third", false)
	y.settledAs(y.model)
}

func TestAWipedStoreIsFilledFromTheJournal(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	y := historyOf(t, h)
	y.write("first", false)
	h.Kill()
	place(t, filepath.Join(h.Data(), "history.db"), nil)
	h.Restart(t)
	y.settledAs(y.model)
	if s := passed(t, h); lost(s) != 0 {
		t.Errorf("a lost range is told: %+v", s.Families)
	}
	y.write("second", false)
	y.settledAs(y.model)
}

func TestWhatNeitherTheStoreNorTheJournalHasIsToldAsLost(t *testing.T) {
	t.Parallel()
	h := e2e.Start(t)
	y := historyOf(t, h)
	last := y.write("first", false)
	h.Stop(t)
	place(t, filepath.Join(h.Data(), "history.db"), nil)
	if err := os.RemoveAll(filepath.Join(h.Data(), "journal")); err != nil {
		t.Fatal(err)
	}
	h.Restart(t)
	s := passed(t, h)
	if got := s.Families[0].Lost; len(got) != 1 || got[0].From != 1 || got[0].To != last {
		t.Errorf("the queue's lost range is told as %+v, want 1 to %d", got, last)
	}
	if !strings.Contains(strings.Join(s.Notices, "\n"), "lost") {
		t.Errorf("no notice tells of it: %q", s.Notices)
	}
	fresh := historyOf(t, h)
	if seq := fresh.write("second", false); seq <= last {
		t.Errorf("the Seq %d was given again", seq)
	}
	fresh.settledAs(fresh.model)
	h.Stop(t)
	h.Restart(t)
	if again := passed(t, h); lost(again) != lost(s) {
		t.Errorf("after a restart %d are told as lost, before %d", lost(again), lost(s))
	}
}

func TestAnotherStoreIsNotTouchedUntilAPersonAcceptsIt(t *testing.T) {
	t.Parallel()
	for name, adopt := range map[string]bool{"as it is": false, "with what the journal has": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stranger := e2e.Start(t)
			theirs := historyOf(t, stranger)
			theirs.write("theirs", false)
			theirs.client.Settle(t)
			stranger.Stop(t)
			foreign := store(t, filepath.Join(stranger.Data(), "history.db"))

			h := e2e.Start(t)
			ours := historyOf(t, h)
			ours.write("ours", false)
			h.Stop(t)
			path := filepath.Join(h.Data(), "history.db")
			place(t, path, foreign)
			h.Launch(t)
			var s e2e.Status
			e2e.Await(t, "the status says what to do", func() (err error) {
				if s, err = h.Status(t.Context()); err == nil && (s.Backends[0].State != "error" || !strings.Contains(s.Backends[0].Remedy, "holdfast local accept")) {
					err = fmt.Errorf("%+v", s.Backends)
				}
				return err
			})
			if s.Ready || len(s.Notices) == 0 {
				t.Errorf("the status is ready %v, with the notices %q", s.Ready, s.Notices)
			}
			before := len(ours.model.Items())
			ours.write("later", true)
			h.Kill() // what was deferred is durable
			if got := store(t, path); !bytes.Equal(got[""], foreign[""]) {
				t.Error("the foreign store was touched")
			}
			h.Launch(t)
			e2e.Await(t, "the host accepts the store", func() error {
				if out, code := h.Run(t, "local", "accept", fmt.Sprintf("--adopt=%v", adopt)); code != 0 {
					return fmt.Errorf("exit code %d: %s", code, out)
				}
				return nil
			})
			ours.client.Settle(t)
			var known []string
			for _, w := range ours.client.Items(t) {
				known = append(known, w.Text("WorkItemHash"))
			}
			all := strings.Join(known, " ")
			if len(known) < before+len(theirs.model.Items()) || !strings.Contains(all, "later-") || !strings.Contains(all, "theirs-") {
				t.Errorf("afterwards the store has %q", known)
			}
			if strings.Contains(all, "ours-") != adopt {
				t.Errorf("with adopt=%v the store has %q", adopt, known)
			}
		})
	}
}

func TestACopiedDataDirectoryIsRefusedUntilItIsAHostOfItsOwn(t *testing.T) {
	t.Parallel()
	shared := filepath.Join(t.TempDir(), "shared.db")
	config := fmt.Sprintf("backend \"sqlite\" \"local\" {\n  local = true\n  path  = %q\n}\n", shared)
	h := e2e.StartWith(t, e2e.Setup{Config: config})
	y := historyOf(t, h)
	y.write("first", false)
	h.Kill()
	copied := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(copied, os.DirFS(h.Data())); err != nil {
		t.Fatal(err)
	}
	h.Restart(t)
	y.write("second", false)

	twin := e2e.StartWith(t, e2e.Setup{Config: config, Data: copied, Waits: true})
	e2e.Await(t, "the copy says what to do", func() error {
		s, err := twin.Status(t.Context())
		if err == nil && !strings.Contains(s.Backends[0].Remedy, "holdfast local new-id") {
			err = fmt.Errorf("%+v", s.Backends)
		}
		return err
	})
	if out, code := twin.Run(t, "local", "new-id"); code == 0 {
		t.Errorf("a new id is given to a running host: %s", out)
	}
	twin.Stop(t)
	must(t, twin, "local", "new-id")
	twin.Restart(t)
	passed(t, twin)
	y.settledAs(y.model)

	theirs := &history{T: t, client: twin.Client(), model: y.model}
	defer theirs.client.Close()
	theirs.write("by the copy", false)
	y.write("by the original", false)
	e2e.Compare(t, y.client, y.model)
	e2e.Compare(t, theirs.client, y.model)
	for _, each := range []*e2e.Host{h, twin} {
		each.Stop(t)
		each.Restart(t)
		passed(t, each)
	}
	e2e.Compare(t, y.client, y.model)
}
