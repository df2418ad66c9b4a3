package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/adapters/journal"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

func TestListsShowTheirRecordsInColumns(t *testing.T) {
	t.Parallel()
	host := &standIn{read: func(q any) core.Answer {
		switch q := q.(type) {
		case ports.ItemQuery:
			if q.After == nil {
				return core.Answer{Payload: "WorkItems", List: true, Value: []byte(`[{"WorkItemHash":"a","Status":"Error","LastError":"no\u001b[31m route\nsecond"}]`), More: true, Cursor: (ports.Cursor{Key: "a"}).Token()}
			}
			return core.Answer{Payload: "WorkItems", List: true, Value: []byte(`[{"WorkItemHash":"b","Status":"Complete"}]`)}
		case ports.EventQuery:
			return core.Answer{Payload: "Events", List: true, Value: []byte(`[{"EventType":"dispatched","Seq":3,"Payload":{"x":1},"OrderKey":"01767225600000-0000000000000007-h"}]`)}
		case ports.AttemptQuery:
			return core.Answer{Payload: "Attempts", List: true, Value: []byte(`[{"AttemptNumber":2,"Outcome":"Complete","DispatchedAt":"2026-01-01","ErrorMessage":"no"}]`)}
		}
		return core.Answer{Payload: "Manifests", List: true, Stale: true}
	}}
	server := host.serve(t)
	at(t, server, "items").wants(t, exitcode.OK, "WorkItemHash", "a  ", `no\x1b[31m route...`, "1 record; there are more; see --all")
	at(t, server, "items", "--all", "--limit", "1").wants(t, exitcode.OK, "a  ", "b  ")
	at(t, server, "events", "a").wants(t, exitcode.OK, "2026-01-01T00:00:00.000Z  dispatched", `{"x":1}`)
	at(t, server, "attempts", "a/b").wants(t, exitcode.OK, "\n2                        2026-01-01           Complete  no\n")
	at(t, server, "manifests").wants(t, exitcode.OK, "0 records; the local store is behind")
	at(t, server, "items", "--limit", "501").wants(t, exitcode.Usage, "501 is more than 500")
	at(t, server, "items", "--order", "up").wants(t, exitcode.Usage)
	if got := at(t, server, "items", "--json"); !strings.Contains(got.stdout, `"WorkItemHash": "a"`) || !strings.Contains(got.stdout, `"Cursor"`) || got.code != exitcode.OK {
		t.Errorf("%+v", got)
	}
}

func TestFiltersAreSentToTheHost(t *testing.T) {
	t.Parallel()
	var asked []any
	host := &standIn{read: func(q any) core.Answer {
		asked = append(asked, q)
		return core.Answer{Payload: "WorkItems", List: true}
	}}
	at(t, host.serve(t), "items", "--status=Error,Failed", "--capability=Shell", "--action=Run", "--run-id=r", "--run-hash=h", "--operation-hash=o",
		"--assigned-beacon-id=b", "--affinity-key=k", "--error=no route", "--since=2026-01-01T00:00:00Z", "--until=2026-02-01T00:00:00Z", "--order=asc", "--limit=7").wants(t, exitcode.OK)
	want := ports.ItemQuery{Limit: 7, Filter: ports.ItemFilter{Status: []string{"Error", "Failed"}, Capability: "Shell", Action: "Run", RunID: "r", RunHash: "h", OperationHash: "o",
		AssignedBeaconID: "b", AffinityKey: "k", ErrorText: "no route", From: "2026-01-01T00:00:00.000000000Z", To: "2026-02-01T00:00:00.000000000Z"}}
	if diff := cmp.Diff([]any{want}, asked); diff != "" {
		t.Error(diff)
	}
}

func TestARecordIsShownMemberByMember(t *testing.T) {
	t.Parallel()
	host := &standIn{read: func(q any) core.Answer {
		if q == "absent" {
			return core.Answer{Situation: core.NotFound, Payload: "WorkItem"}
		}
		return core.Answer{Payload: "WorkItem", Value: []byte(`{"WorkItemHash":"..","RunID":null,"Settings":{"b":1,"a":[2]},"Note":"two\nlines"}`), Incomplete: true}
	}}
	server := host.serve(t)
	got := at(t, server, "item", "..")
	got.wants(t, exitcode.OK, "WorkItemHash  ..\nRunID\nSettings      {\"b\":1,\"a\":[2]}\n", `two\nlines`, "may be incomplete")
	if host.orders[0] != ".." {
		t.Errorf("asked for %q", host.orders[0])
	}
	at(t, server, "item", "absent").wants(t, exitcode.Failed, `no workitem has the key "absent"`)
}

func TestStatusTellsWhatWaitsAndWhatToDo(t *testing.T) {
	t.Parallel()
	host := &standIn{status: core.Status{
		Version: "1.2.3", Uptime: "3h0m0s", Ack: core.AckLocal, Ready: true,
		Families: []core.FamilyStatus{{Family: ports.Queue, Head: 12, Backlog: 2, OldestMs: 1500, SetAside: 1, Journal: core.JournalStatus{Bytes: 2048, Limit: 1 << 30, Full: true}}},
		Backends: []core.BackendStatus{{Name: "local", Kind: "sqlite", Local: true, State: "error", Detail: "the store is another one", Remedy: "see `holdfast local accept`", Words: []string{"bye\x07"}}},
		Notices:  []string{"Queue: the journal is full"},
	}}
	server := host.serve(t)
	at(t, server, "status", "--counts").wants(t, exitcode.OK, "holdfast 1.2.3, up 3h0m0s, ack local: ready", "2 KiB of 1 GiB, full", "1.5s", "local (local)", "the store is another one; see `holdfast local accept`",
		"! Queue: the journal is full", "1 work item, 5 events, 0 attempts, 0 manifests; 4 KiB on disk")
	at(t, server, "backends").wants(t, exitcode.OK, "last words of local:", `bye\a`)
	at(t, server, "backends", "--json").wants(t, exitcode.OK, `"Kind": "sqlite"`)
	at(t, server, "status", "--json").wants(t, exitcode.OK, `"Backlog": 2`)
}

func TestUnsettledAndLocal(t *testing.T) {
	t.Parallel()
	server := (&standIn{}).serve(t)
	at(t, server, "unsettled", "list").wants(t, exitcode.OK, "nothing is set aside")
	at(t, server, "unsettled", "discard", "queue", "a").wants(t, exitcode.Failed, "has nothing set aside")
	host := &standIn{asides: []core.AsideStatus{
		{Family: ports.Queue, Seq: 9, Action: ports.UpdateWorkItem, Key: "a", Code: ports.Conflict, Reason: "it cannot be", Bytes: 100, At: time.Now()},
		{Family: ports.Queue, Seq: 11, Key: "a"},
	}}
	server = host.serve(t)
	at(t, server, "unsettled", "list").wants(t, exitcode.OK, "it cannot be", "waits behind the one before it")
	at(t, server, "unsettled", "retry", "Queue", "a b").wants(t, exitcode.OK, "2 writes on the way again")
	at(t, server, "unsettled", "discard", "manifest", "a").wants(t, exitcode.OK, "discarded QP_UpdateWorkItem of a, Seq 9")
	at(t, server, "unsettled", "retry", "items", "a").wants(t, exitcode.Usage, "neither queue nor manifest")
	at(t, server, "local", "accept").wants(t, exitcode.OK, "accepted")
	at(t, server, "local", "accept", "--adopt").wants(t, exitcode.OK, "accepted")
	if diff := cmp.Diff([]string{"retry Queue a b", "discard Manifest a", "accept false", "accept true"}, host.orders); diff != "" {
		t.Error(diff)
	}
}

func TestAnExportAppearsOnlyWhenItIsWhole(t *testing.T) {
	t.Parallel()
	host := &standIn{export: []ports.Row{{Kind: ports.KindItem, Body: []byte(`{"WorkItemHash":"a"}`)}, {Kind: ports.KindEvent, Body: []byte(`{"WorkItemHash":"a"}`)}}}
	server := host.serve(t)
	lines := `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"a"}}}` + "\n" + `{"Action":"QP_AppendEvent","Settings":{"Event":{"WorkItemHash":"a"}}}` + "\n"
	if got := at(t, server, "export"); got.stdout != lines || got.code != exitcode.OK {
		t.Errorf("%+v", got)
	}
	path := filepath.Join(t.TempDir(), "history.ndjson")
	at(t, server, "export", "--family", "queue", "-o", path).wants(t, exitcode.OK, "2 lines in ")
	if text, err := os.ReadFile(path); string(text) != lines {
		t.Errorf("%q, %v", text, err)
	}
	host.fault = ports.Errorf(ports.BackendGone, "export", "the plugin died")
	at(t, server, "export", "-o", path).wants(t, exitcode.Environment, "the plugin died")
	if text, err := os.ReadFile(path); string(text) != lines {
		t.Errorf("after a failure: %q, %v", text, err)
	}
	at(t, server, "export", "--family", "items").wants(t, exitcode.Usage, "neither queue nor manifest")
}

func TestPruneGoesOnUntilNothingIsLeft(t *testing.T) {
	t.Parallel()
	host := &standIn{pruned: []ports.Pruned{{Items: 500, Events: 900, More: true}, {Items: 1, Manifests: 2}}}
	at(t, host.serve(t), "prune", "--older-than", "720h").wants(t, exitcode.OK, "pruned 501 work items with 900 events and 0 attempts, and 2 manifests")
	if len(host.orders) != 2 || host.orders[0] != "prune 720h0m0s" {
		t.Errorf("%q", host.orders)
	}
	at(t, host.serve(t), "prune", "--older-than", "30 days").wants(t, exitcode.Usage, "--older-than")
}

// storeAlone is a plugin that was started without a host.
type storeAlone struct {
	ports.Backend
	steps  []ports.Pruned
	closed bool
}

func (s *storeAlone) Describe(context.Context) (ports.Description, error) {
	return ports.Description{Kind: "sqlite", Powers: []string{"Pruner"}}, nil
}
func (s *storeAlone) Prune(context.Context, ports.PruneQuery) (ports.Pruned, error) {
	next := s.steps[0]
	s.steps = s.steps[1:]
	return next, nil
}
func (s *storeAlone) Close() error {
	s.closed = true
	return nil
}

// hostless writes a configuration of a host that does not run.
func hostless(t *testing.T) (file, data string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	data = t.TempDir()
	return fileOf(t, "holdfast.hcl", "listen = \""+l.Addr().String()+"\"\ndata = \""+data+"\"\n"), data
}

func TestPruneWorksWithoutAHost(t *testing.T) {
	t.Parallel()
	file, data := hostless(t)
	store := &storeAlone{steps: []ports.Pruned{{Items: 5, More: true}, {Items: 2}}}
	var stdout, stderr strings.Builder
	p := program{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, launch: func(context.Context, *invocation, *config.Config, *config.Backend) (ports.Backend, error) {
		if store.steps == nil {
			return nil, errors.New("the plugin does not start")
		}
		return store, nil
	}}
	args := []string{"prune", "--older-than", "1h", "--config", file}
	if code := p.run(t.Context(), args); code != exitcode.OK || !strings.Contains(stdout.String(), "pruned 7 work items") || !store.closed {
		t.Errorf("%d: %s%s", code, stdout.String(), stderr.String())
	}
	store.steps = nil
	if code := p.run(t.Context(), args); code != exitcode.Environment {
		t.Errorf("%d: %s", code, stderr.String())
	}
	release, err := journal.Lock(data)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if code := p.run(t.Context(), args); code != exitcode.Environment || !strings.Contains(stderr.String(), "in use by process") {
		t.Errorf("%d: %s", code, stderr.String())
	}
}

func TestDoctorSaysWhatIsWrongAndWhatToDo(t *testing.T) {
	t.Parallel()
	file, data := hostless(t)
	plugin := fileOf(t, "holdfast-backend-sqlite", "#!/bin/sh\n")
	text := "plugin_dir = \"" + filepath.Dir(plugin) + "\"\n"
	if err := appendTo(file, text); err != nil {
		t.Fatal(err)
	}
	sqlite := described(ports.Description{Kind: "sqlite", Version: "1", Powers: []string{"LocalStore"}, Families: ports.Families, Options: []ports.Option{{Name: "path", Type: ports.OptionString}}}, nil)
	runProgram(t, sqlite, "doctor", "--config", file).wants(t, exitcode.Failed, "fail  plugin local", "is not executable", "ok    listen", "1 check failed")
	if err := os.Chmod(plugin, 0o700); err != nil {
		t.Fatal(err)
	}
	runProgram(t, sqlite, "doctor", "--config", file).wants(t, exitcode.OK, "ok    config", "ok    data               "+data+" can be written to", "ok    disk", "ok    plugin local       sqlite 1")
	runProgram(t, described(ports.Description{}, errors.New("it dies")), "doctor", "--config", file).wants(t, exitcode.Failed, "does not start: it dies")
	runProgram(t, sqlite, "doctor", "--config", fileOf(t, "bad.hcl", "listn = 1\n")).wants(t, exitcode.Failed, "fail  config")

	host := &standIn{status: core.Status{Version: "1.2.3", Ready: false, Detail: "the store is away",
		Families: []core.FamilyStatus{{Family: ports.Queue, Backlog: 5000, OldestMs: 60_000, SetAside: 2, Journal: core.JournalStatus{Full: true, Bytes: 10, Limit: 10}}},
		Backends: []core.BackendStatus{{Name: "local", Local: true, State: "waiting-for-beacon", Detail: "refused"}}}}
	runProgram(t, sqlite, "doctor", "--config", file, "--server", host.serve(t)).wants(t, exitcode.Failed,
		"fail  host", "the store is away", "fail  journal queue", "warn  backlog queue      5000 writes, the oldest 1m old", "warn  set aside queue    2 writes", "fail  backend local")
}

func appendTo(path, text string) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(old, text...), 0o600)
}
