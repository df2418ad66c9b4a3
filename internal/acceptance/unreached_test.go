package acceptance

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// Followers that were never reached cost nothing: no room, no time, no stop.

// unreachable is ten backends, none of which ever takes anything, and the command lines of those that live.
func unreachable(t *testing.T) (config, cmdline string) {
	t.Helper()
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cmdline = "sleep\x00" + fmt.Sprint(600_000+os.Getpid()) + "\x00"
	var text strings.Builder
	for i, how := range []string{
		fmt.Sprintf("plugin = %q", filepath.Join(dir, "nowhere")),
		fmt.Sprintf("plugin = %q", filepath.Join(dir, "nowhere", "at", "all")),
		fmt.Sprintf("plugin = %q", dir),
		fmt.Sprintf("plugin = %q", file("no-program", "nothing to run", 0o600)),
		fmt.Sprintf("plugin = %q", file("no-format", "nothing to run", 0o700)),
		fmt.Sprintf("plugin = %q", file("exits", "#!/bin/sh\nexit 1\n", 0o700)),
		fmt.Sprintf("plugin = %q", file("talks", "#!/bin/sh\nwhile :; do echo nonsense; echo nonsense >&2; sleep 0.1; done\n", 0o700)),
		fmt.Sprintf("plugin = %q", file("hangs", "#!/bin/sh\nexec "+strings.TrimSuffix(strings.ReplaceAll(cmdline, "\x00", " "), " ")+"\n", 0o700)),
		fmt.Sprintf("path = %q", filepath.Join(file("no-folder", "", 0o600), "history.db")),
		fmt.Sprintf("path = %q", dir),
	} {
		fmt.Fprintf(&text, "backend \"sqlite\" \"never%d\" {\n  %s\n}\n", i, how)
	}
	return text.String(), cmdline
}

// taken is how many bytes the files below a directory have, without those of the local store.
func taken(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasPrefix(entry.Name(), "history.db") {
			return err
		}
		info, err := entry.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) { // a segment that was trimmed meanwhile
		t.Fatal(err)
	}
	return bytes
}

func TestFollowersThatWereNeverReachedCostNothing(t *testing.T) {
	t.Parallel()
	const limit = 4 << 20
	local := "journal {\n  limit = \"4MiB\"\n}\nbackend \"sqlite\" \"local\" {\n  local = true\n}\n"
	never, cmdline := unreachable(t)
	route := "route = [\"never0\", \"never5\", \"never8\", \"local\"]\n"
	alone := e2e.StartWith(t, e2e.Setup{Config: local})
	began := time.Now()
	many := e2e.StartWith(t, e2e.Setup{Config: route + local + never})
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the start beside them took %s", took)
	}

	var lines bytes.Buffer
	for i := range 2000 {
		lines.Write(append(e2e.Line("QP_UpsertWorkItem", item(fmt.Sprintf("item-%d", i), `"Status":"Running","Settings":"`+strings.Repeat("x", 4096)+`"`)), '\n'))
	}
	took := map[*e2e.Host]time.Duration{}
	for _, h := range []*e2e.Host{alone, many} {
		client := h.Client()
		defer client.Close()
		began := time.Now()
		answers, err := client.Stream(t.Context(), "stream", bytes.NewReader(lines.Bytes()))
		if err != nil || len(answers) != 2000 {
			t.Fatalf("%d answers: %v", len(answers), err)
		}
		for i, a := range answers {
			if !a.Success {
				t.Fatalf("line %d is answered %s: %s", i+1, a.Code, a.Reason)
			}
		}
		for i := range 200 {
			a, err := client.Get(t.Context(), fmt.Sprintf("/v1/work-items/item-%d", i), nil)
			if err != nil || !a.Success || a.Stale || a.Backend != "local" || a.Took > callerLimit {
				t.Fatalf("a read is answered %d by %s after %s, stale %v: %v", a.Status, a.Backend, a.Took, a.Stale, err)
			}
		}
		took[h] = time.Since(began)
	}
	t.Logf("alone %s, beside ten that never come %s", took[alone], took[many])

	// More than the limit has gone through both journals; both were trimmed. How far a journal is below its limit is chance, so
	// what is beside it is compared.
	rest := map[*e2e.Host]int64{}
	for _, h := range []*e2e.Host{alone, many} {
		e2e.Await(t, "the journal is trimmed", func() error {
			s, err := h.Status(t.Context())
			if err == nil && (s.Families[0].Journal.First == 1 || s.Families[0].Journal.Bytes > limit/4*3) {
				err = fmt.Errorf("it begins at %d and has %d bytes", s.Families[0].Journal.First, s.Families[0].Journal.Bytes)
			}
			rest[h] = taken(t, h.Data()) - s.Families[0].Journal.Bytes
			return err
		})
	}
	if a, b := rest[alone], rest[many]; b > a+limit/4 {
		t.Errorf("beside the journal the data directory has %d bytes alone, and %d beside followers that never come", a, b)
	}
	e2e.Await(t, "the status tells of each why nothing is copied to it", func() error {
		s, err := many.Status(t.Context())
		if err != nil || !s.Ready || len(s.Backends) != 11 {
			return fmt.Errorf("%d backends, ready %v: %s, %w", len(s.Backends), s.Ready, s.Detail, err)
		}
		for _, b := range s.Backends[1:] {
			if b.State == "bootstrapped" || b.State == "bootstrapping" || b.Detail == "" {
				return fmt.Errorf("%s is %s: %q", b.Name, b.State, b.Detail)
			}
		}
		return nil
	})

	began = time.Now()
	many.Stop(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	left, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range left {
		if text, err := os.ReadFile(path); err == nil && string(text) == cmdline {
			t.Errorf("a plugin that never answered is left behind: %s", path)
		}
	}
}
