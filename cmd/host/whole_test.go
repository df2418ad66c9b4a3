package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/journal"
	store "holdfast/adapters/sqlite"
	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// wholeHost is a host without plugins: HTTP, the core, journals on disk and the SQLite store in this process.
func wholeHost(t *testing.T) (url string) {
	t.Helper()
	url, _ = mirroredHost(t, "")
	return url
}

// storeIn opens a store in this process.
func storeIn(t *testing.T, dir, name string) *store.Store {
	t.Helper()
	s := store.New()
	if err := s.Configure(t.Context(), ports.Configuration{Name: name, DataDir: dir, Options: json.RawMessage(`{"path":"` + name + `.db"}`)}); err != nil {
		t.Fatal(err)
	}
	return s
}

// mirroredHost is a whole host with a mirror of a name; "" gives none.
func mirroredHost(t *testing.T, name string) (url string, mirror *store.Store) {
	t.Helper()
	dir := t.TempDir()
	local := storeIn(t, dir, "local")
	var followers []core.Follower
	if name != "" {
		mirror = storeIn(t, dir, name)
		followers = []core.Follower{{Name: name, Kind: "sqlite", Store: mirror}}
	}
	state, err := journal.OpenState(dir, journal.StateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	journals := map[ports.Family]ports.Journal{}
	for _, f := range ports.Families {
		if journals[f], err = journal.Open(journal.Options{Dir: dir, Family: f}); err != nil {
			t.Fatal(err)
		}
	}
	host, err := core.New(core.Config{
		Version: "test", Ack: core.AckLocal, State: state, Journals: journals, Logger: hclog.NewNullLogger(),
		Local:     core.Local{Name: "local", Kind: "sqlite", Store: local, Health: func() core.Health { return core.Health{Running: true} }},
		Followers: followers,
	})
	if err != nil {
		t.Fatal(err)
	}
	api, err := httpapi.New(httpapi.Config{Host: httpapi.Over(host), Loopback: true, Logger: hclog.NewNullLogger()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ran := make(chan error, 1)
	go func() { ran <- host.Run(ctx) }()
	server := httptest.NewUnstartedServer(nil)
	server.Config = api.Server()
	server.Start()
	t.Cleanup(func() {
		server.Close()
		stop()
		if err := <-ran; err != nil {
			t.Error(err)
		}
		for _, j := range journals {
			_ = j.Close()
		}
		_ = state.Close()
		_ = local.Close()
		if mirror != nil {
			_ = mirror.Close()
		}
	})
	untilReady(t, server.URL, name)
	return server.URL, mirror
}

// untilReady waits until the host is ready, and a backend has everything.
func untilReady(t *testing.T, url, backend string) {
	t.Helper()
	var names []string
	if backend != "" {
		names = []string{backend}
	}
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	last := errors.New("it was not asked")
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); <-tick.C {
		if last = readiness(url, names); last == nil {
			return
		}
	}
	t.Fatalf("the host is not ready: %v", last)
}

// recordedWrites gives the first writes of a recorded stream, zipped. Its reads are left out: how long they take tells of the
// machine.
func recordedWrites(t *testing.T, most int) (path string, lines int) {
	t.Helper()
	from, err := openSource("../../testdata/recorded/actions.ndjson.gz", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	var text strings.Builder
	for in := bufio.NewReader(from); lines < most; {
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if call, err := core.ParseCall([]byte(line)); err != nil || !call.Action.IsWrite() {
			continue
		}
		text.WriteString(line)
		lines++
	}
	return fileOf(t, "actions.ndjson.gz", zip(t, text.String())), lines
}

func TestARecordedHistoryGoesInOnceAndComesOutAgain(t *testing.T) {
	t.Parallel()
	first := wholeHost(t)
	recorded, lines := recordedWrites(t, 1000)
	every := fmt.Sprintf("%d sent, 0 failed: ", lines)
	at(t, first, "ingest", recorded).wants(t, exitcode.OK, every)
	counts := at(t, first, "status", "--counts")
	counts.wants(t, exitcode.OK, ": ready", "bootstrapped")
	at(t, first, "ingest", recorded).wants(t, exitcode.OK, every, "already present")
	if surveyOf(counts) != surveyOf(at(t, first, "status", "--counts")) {
		t.Errorf("the second time changed what there is: %s", surveyOf(counts))
	}

	exported := filepath.Join(t.TempDir(), "history.ndjson")
	at(t, first, "export", "-o", exported).wants(t, exitcode.OK)
	second := wholeHost(t)
	at(t, second, "ingest", exported).wants(t, exitcode.OK, ", 0 failed: ")
	copied := filepath.Join(t.TempDir(), "copy.ndjson")
	at(t, second, "export", "-o", copied).wants(t, exitcode.OK)
	if want, got := linesOf(t, exported), linesOf(t, copied); len(want) != len(got) {
		t.Errorf("%d lines went in, %d came out", len(want), len(got))
	} else {
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("line %d went in as\n%s\nand came out as\n%s", i+1, want[i], got[i])
			}
		}
	}
	at(t, first, "items", "--all", "--limit", "100").wants(t, exitcode.OK, "Complete")
	at(t, first, "manifests").wants(t, exitcode.OK, "there are more")
	at(t, first, "doctor").wants(t, exitcode.Failed, "ok    host", "ok    backlog queue", "ok    backend local")
}

func TestAMirrorIsComparedMendedAndTakenFrom(t *testing.T) {
	t.Parallel()
	url, mirror := mirroredHost(t, "mirror")
	recorded, _ := recordedWrites(t, 100) // each comparison looks every record up
	at(t, url, "ingest", recorded).wants(t, exitcode.OK, ", 0 failed: ")
	untilReady(t, url, "mirror")
	at(t, url, "verify", "local", "mirror").wants(t, exitcode.OK, " records in both, 0 of them different; 0 only in local; 0 only in mirror")

	// One record is lost in the mirror, one is only there.
	page, err := mirror.Items(t.Context(), ports.ItemQuery{Limit: 1})
	if err != nil || len(page.Rows) != 1 {
		t.Fatal(page, err)
	}
	lost := page.Rows[0]
	lost.Gone, lost.Body = true, nil
	extra := ports.Row{Kind: ports.KindItem, Key: "extra", Body: []byte(`{"WorkItemHash":"extra","Status":"Running"}`), First: page.Rows[0].First}
	if _, err := mirror.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{lost, extra}}); err != nil {
		t.Fatal(err)
	}
	at(t, url, "verify", "local", "mirror").wants(t, exitcode.Failed, lost.Key, "only in local", "extra", "only in mirror", " 1 only in local; 1 only in mirror")
	at(t, url, "resync", "mirror").wants(t, exitcode.OK, "copied to mirror again")
	untilReady(t, url, "mirror")
	at(t, url, "verify", "local", "mirror").wants(t, exitcode.Failed, " 0 only in local; 1 only in mirror")

	at(t, url, "adopt", "mirror").wants(t, exitcode.OK, " 1 merged, 0 expired, 0 ignored, 0 refused")
	at(t, url, "item", "extra").wants(t, exitcode.OK, "Running")
	untilReady(t, url, "mirror")
	at(t, url, "verify", "local", "mirror").wants(t, exitcode.OK, " 0 only in mirror")

	extra.Key, extra.Body = "more", []byte(`{"WorkItemHash":"more"}`)
	if _, err := mirror.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{extra}}); err != nil {
		t.Fatal(err)
	}
	at(t, url, "resync", "mirror", "--exact").wants(t, exitcode.Failed, "1 record only in mirror", "add --confirm 1")
	at(t, url, "resync", "mirror", "--exact", "--confirm", "2").wants(t, exitcode.Failed, "nothing was removed")
	at(t, url, "resync", "mirror", "--exact", "--confirm", "1").wants(t, exitcode.OK, "1 record removed from mirror")
	at(t, url, "verify", "local", "mirror").wants(t, exitcode.OK, " 0 only in mirror")
}

// surveyOf is the line with the counts.
func surveyOf(o outcome) string {
	for line := range strings.Lines(o.stdout) {
		if text, _, found := strings.Cut(line, " on disk"); found {
			return text[:strings.LastIndex(text, ";")]
		}
	}
	return ""
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
