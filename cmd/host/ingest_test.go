package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast/adapters/httpapi"
	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

func actionLine(n int) string {
	return fmt.Sprintf(`{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"%d"}}}`, n)
}

// fileOf writes a file of lines and gives its path.
func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func zip(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestIngestCountsEveryAnswer(t *testing.T) {
	t.Parallel()
	host := &standIn{answer: func(n int, _ core.Call) core.Answer {
		return []core.Answer{{Seq: 1}, {Situation: core.AlreadyPresent}, {Situation: core.Deferred, Seq: 2}, {Situation: core.NotFound}}[(n-1)%4]
	}}
	var text strings.Builder
	for n := range 10_000 {
		text.WriteString(actionLine(n) + "\n")
	}
	got := at(t, host.serve(t), "ingest", fileOf(t, "a.ndjson", text.String()))
	got.wants(t, exitcode.OK, "10000 sent, 0 failed: 2500 already present, 2500 deferred, 2500 not found, 2500 stored\n")
	if got.stderr != "" {
		t.Errorf("on standard error: %q", got.stderr)
	}
}

func TestIngestNamesTheLinesThatFail(t *testing.T) {
	t.Parallel()
	host := &standIn{answer: func(n int, call core.Call) core.Answer {
		if n == 2 {
			return core.Answer{Situation: core.RefusedQuietly, Err: ports.Errorf(ports.Conflict, "", "older than what is there")}
		}
		return core.Answer{Seq: uint64(n)}
	}}
	text := actionLine(1) + "\n\n  \n" + actionLine(2) + "\r\n{\x1b[31m\n" + actionLine(3)
	got := at(t, host.serve(t), "ingest", fileOf(t, "a.ndjson", text))
	got.wants(t, exitcode.Failed, "a.ndjson:4: conflict: older than what is there\n", "a.ndjson:5: invalid: call: is not valid JSON", "4 sent, 2 failed: 2 stored, 1 invalid, 1 refused as conflict\n")
	if strings.Contains(got.stderr, "\x1b") {
		t.Error("a control character reached the terminal")
	}
	if call := host.calls[len(host.calls)-1]; call.Source.Line != 6 {
		t.Errorf("the last line is %d", call.Source.Line)
	}
}

func TestIngestTellsOnlyTheFirstFailures(t *testing.T) {
	t.Parallel()
	got := at(t, (&standIn{}).serve(t), "ingest", fileOf(t, "a", strings.Repeat("nothing\n", 1000)))
	got.wants(t, exitcode.Failed, "1000 sent, 1000 failed: 1000 invalid\n", "more lines fail")
	if n := strings.Count(got.stderr, "invalid: "); n != shownFailures {
		t.Errorf("%d are told", n)
	}
}

func TestAZippedFileIsTheSameStream(t *testing.T) {
	t.Parallel()
	text := actionLine(1) + "\n" + actionLine(2) + "\n"
	names := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		names <- r.Header.Get(httpapi.StreamHeader)
		fmt.Fprint(w, strings.Repeat(`{"Success":true,"Seq":1}`+"\n", 2))
	}))
	defer server.Close()
	at(t, server.URL, "ingest", fileOf(t, "a.ndjson", text)).wants(t, exitcode.OK, "2 sent, 0 failed: 2 stored\n")
	at(t, server.URL, "ingest", fileOf(t, "a.ndjson.gz", zip(t, text))).wants(t, exitcode.OK, "2 sent, 0 failed: 2 stored\n")
	if plain, zipped := <-names, <-names; plain != "a.ndjson" || zipped != plain {
		t.Errorf("%q and %q", plain, zipped)
	}
}

func TestIngestOfSeveralFilesSumsUp(t *testing.T) {
	t.Parallel()
	host := &standIn{}
	one, two := fileOf(t, "one", actionLine(1)), fileOf(t, "two", actionLine(2)+"\n"+actionLine(3)+"\n")
	at(t, host.serve(t), "ingest", one, two).wants(t, exitcode.OK, "one: 1 sent, 0 failed: 1 stored\n", "two: 2 sent, 0 failed: 2 stored\n", "\n3 sent, 0 failed: 3 stored\n")
}

func TestAnIngestThatBreaksOffSaysHowFarItCame(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Repeat(`{"Success":true,"Seq":1}`+"\n", 3)) // and no more, whatever is sent
	}))
	defer server.Close()
	text := strings.Repeat(actionLine(1)+"\n", 10)
	got := at(t, server.URL, "ingest", fileOf(t, "a", text))
	got.wants(t, exitcode.Environment, "3 lines answered, then it broke off", "sending the file again is safe", "3 sent, 0 failed: 3 stored\n")
}

func TestIngestOfADamagedFileSaysSo(t *testing.T) {
	t.Parallel()
	host := &standIn{}
	zipped := zip(t, strings.Repeat(actionLine(1)+"\n", 10))
	got := at(t, host.serve(t), "ingest", fileOf(t, "a.gz", zipped[:len(zipped)-6]))
	got.wants(t, exitcode.Environment, "unexpected EOF", "a.gz: ")
}

func TestWithoutAHostEveryCommandNamesServe(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + l.Addr().String()
	l.Close()
	file := fileOf(t, "a", actionLine(1))
	for _, args := range [][]string{
		{"ingest", file}, {"export"}, {"status"}, {"backends"}, {"items"}, {"item", "a"}, {"events", "a"}, {"attempts", "a"}, {"manifests"}, {"manifest", "a"},
		{"unsettled", "list"}, {"unsettled", "retry", "queue", "a"}, {"unsettled", "discard", "queue", "a"}, {"local", "accept"}, {"prune", "--older-than", "1h"},
	} {
		at(t, nobody, args...).wants(t, exitcode.Environment, "no host answers at "+nobody, "`holdfast serve`")
	}
}

func TestATokenIsAskedForAndUsed(t *testing.T) {
	t.Parallel()
	server := (&standIn{}).serve(t, httpapi.Token{Name: "viewer", Role: "read", Secret: "see"}, httpapi.Token{Name: "hub", Role: "write", Secret: "send"})
	file := fileOf(t, "a", actionLine(1))
	at(t, server, "ingest", file).wants(t, exitcode.Environment, "--token")
	at(t, server, "ingest", file, "--token", "see").wants(t, exitcode.Failed, "a:1: unauthorized: the token \"viewer\" has the role read; this needs the role write", "1 sent, 1 failed: 1 unauthorized")
	at(t, server, "ingest", file, "--token", "send").wants(t, exitcode.OK, "1 sent, 0 failed")
	at(t, server, "prune", "--older-than", "1h", "--token", "send").wants(t, exitcode.Environment, "this needs the role admin")
}

func TestAnotherServerIsNotTakenForAHost(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer server.Close()
	for _, args := range [][]string{{"status"}, {"items"}, {"ingest", fileOf(t, "a", actionLine(1)+"\n")}} {
		at(t, server.URL, args...).wants(t, exitcode.Environment)
	}
	at(t, "::", "status").wants(t, exitcode.Usage, "--server")
}
