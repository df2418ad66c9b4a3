package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
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
	dir := t.TempDir()
	local := store.New()
	options := json.RawMessage(`{"path":"history.db"}`)
	if err := local.Configure(t.Context(), ports.Configuration{Name: "local", DataDir: dir, Options: options}); err != nil {
		t.Fatal(err)
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
		Local: core.Local{Name: "local", Kind: "sqlite", Store: local, Health: func() core.Health { return core.Health{Running: true} }},
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
	})
	untilReady(t, server.URL)
	return server.URL
}

func untilReady(t *testing.T, url string) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); <-tick.C {
		got, err := http.Get(url + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		got.Body.Close()
		if got.StatusCode == http.StatusOK {
			return
		}
	}
	t.Fatal("the host is not ready")
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
