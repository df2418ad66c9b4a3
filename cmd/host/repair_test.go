package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

func TestStatusTellsOfEveryFollower(t *testing.T) {
	t.Parallel()
	host := &standIn{status: mirrored(
		core.FollowerStatus{Family: ports.Queue, State: "bootstrapped", Phase: "lagging", Suspect: true, Position: 4690, Behind: 21, BehindMs: 2500, Copied: 4000,
			Unsettled: 2, InDoubt: 1, Discarded: 3, LastError: "no answer in 5s", LastErrorAt: time.Now().Add(-time.Minute)},
		core.FollowerStatus{Family: ports.Manifest, State: "error", Phase: "error", Detail: "no schema", Remedy: "mend it", LastError: "no schema"},
	)}
	host.status.Notices = []string{"mirror, Manifest: no schema: mend it"}
	server := host.serve(t)
	for _, command := range []string{"status", "backends"} {
		at(t, server, command).wants(t, exitcode.OK,
			"lagging, suspect  4690      21      2.5s  4000    2 refused, 1 in doubt, 3 given up  last error ", "no answer in 5s\n",
			"mirror    Manifest  error         error             0         0             0                                          no schema; mend it\n")
	}
	at(t, server, "status").wants(t, exitcode.OK, "! mirror, Manifest: no schema: mend it")
	at(t, server, "backends", "--json").wants(t, exitcode.OK, `"Phase": "lagging"`)
}

func TestTheDoctorTellsOfFollowersThatNeedSomething(t *testing.T) {
	t.Parallel()
	three := int64(3)
	file, _ := hostless(t)
	sqlite := described(ports.Description{}, errors.New("not asked"))
	for _, c := range []struct {
		name string
		f    core.FollowerStatus
		want []string
	}{
		{"one that is ready", core.FollowerStatus{State: "bootstrapped", Phase: "ready"}, []string{"ok    mirror queue       ready\n"}},
		{"one that is on its way", core.FollowerStatus{State: "bootstrapped", Phase: "copying", Behind: 7, BehindMs: 90_000}, []string{"ok    mirror queue       copying; 7 behind for 1m30s\n"}},
		{"one that does not keep up", core.FollowerStatus{State: "bootstrapped", Phase: "lagging", Behind: 7, BehindMs: 90_000, LastError: "slow"}, []string{"warn  mirror queue       lagging; 7 behind for 1m30s; slow\n"}},
		{"one that is away", core.FollowerStatus{State: "waiting-for-beacon", Phase: "given-up", Detail: "it dies"}, []string{"warn  mirror queue       given-up; it dies\n"}},
		{"one that needs a person", core.FollowerStatus{State: "error", Phase: "error", Detail: "no room", Remedy: "make some"}, []string{"fail  mirror queue       error; no room; make some\n"}},
		{"one that keeps nothing of it", core.FollowerStatus{State: "unassigned", Phase: "unassigned"}, []string{"ok    mirror queue       unassigned\n"}},
		{"one that refused", core.FollowerStatus{State: "bootstrapped", Phase: "ready", Unsettled: 1}, []string{"warn  mirror queue       1 key refused; see `holdfast unsettled list --backend mirror`", "retry --backend mirror queue --all"}},
		{"one that has more", core.FollowerStatus{State: "bootstrapped", Phase: "ready", OnlyThere: &three, Doubtful: true}, []string{"3 records are only there; `holdfast adopt mirror`", "may have records that were removed", "`holdfast resync mirror --exact`"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.f.Family = ports.Queue
			host := &standIn{status: mirrored(c.f)}
			runProgram(t, sqlite, "doctor", "--config", file, "--server", host.serve(t)).wants(t, exitcode.Failed, c.want...)
		})
	}
}

func TestUnsettledKeysOfBackendsAreListedRetriedAndGivenUp(t *testing.T) {
	t.Parallel()
	host := &standIn{status: mirrored(), asides: []core.AsideStatus{{Family: ports.Queue, Seq: 9, Key: "z"}}, keys: []core.UnsettledStatus{
		{Backend: "mirror", Family: ports.Queue, Key: "a", Kind: ports.RefusedKey, Code: ports.TooLarge, Reason: "too large for it", First: 3, Last: 8, At: time.Now()},
		{Backend: "mirror", Family: ports.Queue, Key: "b", Kind: ports.InDoubt, First: 4, Last: 4},
		{Backend: "mirror", Family: ports.Manifest, Key: "m", Kind: ports.PoisonKey},
	}}
	server := host.serve(t)
	at(t, server, "unsettled", "list").wants(t, exitcode.OK, "waits behind", "mirror   Queue     a    refused   too_large  3      8  ", "too large for it", "in_doubt", "poison")
	got := at(t, server, "unsettled", "list", "--backend", "mirror", "--family", "queue", "--limit", "1")
	got.wants(t, exitcode.OK, "  a  ", "there are more; see")
	if strings.Contains(got.stdout, "in_doubt") || strings.Contains(got.stdout, "waits behind") {
		t.Errorf("too much is listed: %s", got.stdout)
	}
	at(t, server, "unsettled", "list", "--backend", "mirror", "--family", "queue", "--after", "a").wants(t, exitcode.OK, "in_doubt")
	at(t, server, "unsettled", "list", "--backend", "miror").wants(t, exitcode.Failed, "there is local, mirror")
	at(t, server, "unsettled", "list", "--json").wants(t, exitcode.OK, `"Kind": "poison"`)

	at(t, server, "unsettled", "retry", "--backend", "mirror", "Queue", "a").wants(t, exitcode.OK, "1 key on the way again; see `holdfast unsettled list --backend mirror`")
	at(t, server, "unsettled", "retry", "--backend", "mirror", "queue", "--all").wants(t, exitcode.OK, "1 key on the way again")
	at(t, server, "unsettled", "discard", "--backend", "mirror", "manifest", "m").wants(t, exitcode.OK, "gave up m of mirror")
	for _, args := range [][]string{{"retry", "queue"}, {"retry", "queue", "--all"}, {"retry", "--backend", "mirror", "queue", "a", "--all"}, {"discard", "--backend", "mirror", "queue"}} {
		at(t, server, append([]string{"unsettled"}, args...)...).wants(t, exitcode.Usage)
	}
	if diff := cmp.Diff([]string{"retry mirror Queue a", "retry mirror Queue ", "discard mirror Manifest m"}, host.orders); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyShowsDifferencesAndEndsWithOne(t *testing.T) {
	t.Parallel()
	host := &standIn{status: mirrored(), repair: repaired{verification: core.Verification{A: "local", B: "mirror", Compared: 7}}}
	server := host.serve(t)
	at(t, server, "verify", "local", "mirror").wants(t, exitcode.OK, "7 records in both, 0 of them different; 0 only in local; 0 only in mirror\n")
	host.repair.verification = core.Verification{A: "local", B: "mirror", Compared: 1, OnlyA: 1, Different: 3, OneWay: true, Differences: []core.Difference{
		{Family: ports.Queue, Kind: ports.KindItem, Key: "a", Members: []string{"Status", "Result"}},
		{Family: ports.Queue, Kind: ports.KindEvent, Key: "a", GUID: "g-1", Only: "local"},
		{Family: ports.Queue, Kind: ports.KindAttempt, Key: "a\x1b", Number: 2, Members: []string{"Outcome"}},
	}}
	at(t, server, "verify", "local", "mirror").wants(t, exitcode.Failed, "Queue   WorkItem  a            differs in Status, Result\n", "Event     a      g-1   only in local\n", `a\x1b  2`, "and 1 more\n",
		"1 record in both, 3 of them different; 1 only in local; mirror cannot be walked", "local and mirror are not equal")
	at(t, server, "verify", "local", "mirror", "--json").wants(t, exitcode.Failed, `"OnlyA": 1`)
	many := &host.repair.verification
	many.OnlyA, many.Pruned, many.OneWay = 60, 7, false
	for i := range 50 {
		many.Differences = append(many.Differences, core.Difference{Family: ports.Queue, Kind: ports.KindItem, Key: fmt.Sprintf("k-%02d", i), Only: "local"})
	}
	const counts = "1 record in both, 3 of them different; 60 only in local; 0 only in mirror; 7 more only in the local store, past the retention of the other\n"
	for args, want := range map[string]struct {
		rows int
		more string
	}{"": {20, "and 43 more\n\n" + counts}, "--limit=53": {53, "and 10 more\n\n" + counts}, "--limit=1": {1, "and 62 more\n\n" + counts}, "--limit=0": {0, counts}} {
		got := at(t, server, append([]string{"verify", "local", "mirror"}, strings.Fields(args)...)...)
		got.wants(t, exitcode.Failed)
		if !strings.HasSuffix(got.stdout, want.more) || strings.Count(got.stdout, "Queue  ") != want.rows {
			t.Errorf("verify %s prints\n%s", args, got.stdout)
		}
	}
	at(t, server, "verify", "local", "mirror", "--limit=-1").wants(t, exitcode.Usage, "--limit")
	at(t, server, "verify", "local", "nobody").wants(t, exitcode.Failed, `B: no backend is called "nobody"; there is local, mirror`)
	host.repair.fault = ports.Errorf(ports.Unavailable, "verify", "mirror is away")
	at(t, server, "verify", "local", "mirror").wants(t, exitcode.Environment, "mirror is away")
}

func TestCopyAndAdoptTellWhatTheyDid(t *testing.T) {
	t.Parallel()
	host := &standIn{status: mirrored(), repair: repaired{
		copied:  core.Copied{From: "local", To: "mirror", Looked: 9, Put: 2, Resumed: true},
		adopted: core.Adopted{Backend: "mirror", Looked: 9, Equal: 5, Taken: 2, Expired: 1, Ignored: 1},
	}}
	server := host.serve(t)
	at(t, server, "copy", "--from", "local", "--to", "mirror").wants(t, exitcode.OK, "9 records of local looked at, 2 put into mirror, 0 keys refused; it went on where")
	at(t, server, "adopt", "mirror").wants(t, exitcode.OK, "9 records of mirror looked at: 5 equal, 2 merged, 1 expired, 1 ignored, 0 refused\n")
	at(t, server, "copy", "--from", "local").wants(t, exitcode.Usage, "--to")
	host.repair.copied.Unsettled, host.repair.copied.Refusals = 1, []ports.Unsettled{{Key: "a", Code: ports.TooLarge, Reason: "too large for it"}}
	host.repair.adopted.Refused = 1
	at(t, server, "copy", "--from", "local", "--to", "mirror").wants(t, exitcode.Failed, "a    too_large  too large for it", "1 key refused by mirror")
	at(t, server, "adopt", "mirror").wants(t, exitcode.Failed, "1 record refused")
	at(t, server, "copy", "--from", "local", "--to", "mirror", "--json").wants(t, exitcode.Failed, `"Put": 2`)
	at(t, server, "adopt", "mirror", "--json").wants(t, exitcode.Failed, `"Taken": 2`)
	if diff := cmp.Diff([]string{"copy local mirror", "adopt mirror"}, host.orders[:2]); diff != "" {
		t.Error(diff)
	}
}

func TestResyncExactRemovesOnlyWhatIsConfirmed(t *testing.T) {
	t.Parallel()
	host := &standIn{status: mirrored(), repair: repaired{onlyThere: 3}}
	server := host.serve(t)
	at(t, server, "resync", "mirror").wants(t, exitcode.OK, "everything is copied to mirror again; nothing is removed from it")
	at(t, server, "resync", "mirror", "--exact").wants(t, exitcode.Failed, "3 records only in mirror", "add --confirm 3")
	at(t, server, "resync", "mirror", "--exact", "--confirm", "2").wants(t, exitcode.Failed, "3 records are only in mirror, not 2; nothing was removed")
	at(t, server, "resync", "mirror", "--exact", "--confirm", "3").wants(t, exitcode.OK, "3 records removed from mirror")
	at(t, server, "resync", "mirror", "--confirm", "3").wants(t, exitcode.Usage, "--exact")
	at(t, server, "resync", "mirror", "--exact", "--confirm=-3").wants(t, exitcode.Usage, "it is a count")
	at(t, server, "resync", "nobody").wants(t, exitcode.Failed, "there is local, mirror")
	host.repair.onlyThere = 0
	at(t, server, "resync", "mirror", "--exact").wants(t, exitcode.OK, "mirror has nothing that the local store has not")
	want := []string{"resync mirror", "exact mirror -1", "exact mirror 2", "exact mirror 3", "exact mirror -1"}
	if diff := cmp.Diff(want, host.orders); diff != "" {
		t.Error(diff)
	}
}

func TestOnlyTheTypedCountIsTheCount(t *testing.T) {
	t.Parallel()
	for want, texts := range map[bool][]string{true: {"3\n", " 3 \n", "3"}, false: {"", "\n", "2\n", "33\n", "yes\n", "-3\n"}} {
		for _, text := range texts {
			if typed(strings.NewReader(text), io.Discard, 3) != want {
				t.Errorf("%q", text)
			}
		}
	}
}

func TestAWorkWhoseOutcomeDoesNotComeIsNoSuccess(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{"cut off": `{"Progress":{"Looked":1}}` + "\n", "cut in a line": `{"Available":true,"Succ`, "foreign": "<html>\n"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }))
		t.Cleanup(server.Close)
		if got := at(t, server.URL, "verify", "local", "mirror"); got.code != exitcode.Environment || got.stdout != "" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
