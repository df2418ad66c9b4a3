package journal

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/ports"
)

func TestAnAssignmentThatAPersonChangedCounts(t *testing.T) {
	t.Parallel()
	before := ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: "2025"}
	now := "2026-01-01T00:00:00Z"
	tests := []struct {
		name     string
		text     string // "-" leaves the file, "" removes it
		queue    *ports.Assignment
		manifest *ports.Assignment
	}{
		{"not at all", "-", &before, nil},
		{"by removing the file", "", &before, nil},
		{"in its looks only", `{"Manifest":null,"Queue":{"AssignedAt":"2025","BeaconID":"bcn","IDBeaconConnection":3}}`, &before, nil},
		{"to another connection", `{"Queue":{"BeaconID":"bcn","IDBeaconConnection":4,"AssignedAt":"2025"},"Manifest":null}`,
			&ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 4, AssignedAt: "2025"}, nil},
		{"to none", `{"Queue":null,"Manifest":null}`, nil, nil},
		{"for the other family", `{"Manifest":{"BeaconID":"bcn","IDBeaconConnection":3}}`, &before,
			&ports.Assignment{BeaconID: "bcn", IDBeaconConnection: 3, AssignedAt: now}},
		{"to nothing said", `{}`, &before, nil},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, assignmentsName)
			s, _ := told(t, dir, newClock())
			ok(t, s.SetAssignment(ports.Queue, &before))
			ok(t, s.Close())
			original := must(os.ReadFile(path))
			switch c.text {
			case "-":
			case "":
				ok(t, os.Remove(path))
			default:
				ok(t, os.WriteFile(path, []byte(c.text), 0o600))
			}
			for range 2 {
				s, log := told(t, dir, newClock())
				if got := must(s.Assignment(ports.Queue)); cmp.Diff(c.queue, got) != "" {
					t.Error(cmp.Diff(c.queue, got))
				}
				if got := must(s.Assignment(ports.Manifest)); cmp.Diff(c.manifest, got) != "" {
					t.Error(cmp.Diff(c.manifest, got))
				}
				if len(s.Damaged()) > 0 {
					t.Errorf("damaged %q: %s", s.Damaged(), log)
				}
				ok(t, s.Close())
				same := cmp.Diff(&before, c.queue) == "" && c.manifest == nil
				if got := must(os.ReadFile(path)); bytes.Equal(got, original) != same {
					t.Errorf("the file is %s", got)
				}
			}
		})
	}
}

func TestAnAssignmentWhoseFileCouldNotBeWrittenIsShownAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, assignmentsName)
	s, log := told(t, dir, newClock())
	ok(t, os.MkdirAll(filepath.Join(path, "full"), 0o700)) // no file can take its place
	for i := range int64(3) {
		ok(t, s.SetAssignment(ports.Queue, &ports.Assignment{BeaconID: "bcn", IDBeaconConnection: i}))
	}
	if n := strings.Count(log.String(), "cannot be written"); n != 1 {
		t.Errorf("said %d times: %s", n, log)
	}
	ok(t, os.RemoveAll(path))
	ok(t, s.Close())
	if got := mirrored(t, path)["Queue"]["IDBeaconConnection"]; got != 2.0 {
		t.Errorf("the file shows %v", got)
	}
}
