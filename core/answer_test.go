package core

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/ports"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The whole answer table: every situation, as it is told.
func TestEverySituationIsToldAsTheTableSays(t *testing.T) {
	t.Parallel()
	var got bytes.Buffer
	tell := func(what string, a Answer) {
		text := a.AppendJSON(nil)
		if !json.Valid(text) {
			t.Errorf("%s: %s is not JSON", what, text)
		}
		fmt.Fprintf(&got, "%-34s %d failed=%-5v %s\n", what, a.HTTPStatus(), a.Failed(), text)
	}
	tell("stored", Answer{Seq: 7, Backend: "local"})
	for _, c := range []struct {
		name string
		Situation
	}{
		{"already present", AlreadyPresent},
		{"already absent", AlreadyAbsent},
		{"ignored", Ignored},
		{"expired", Expired},
		{"deferred", Deferred},
		{"not found", NotFound},
	} {
		tell(c.name, Answer{Situation: c.Situation, Seq: 7})
	}
	for _, code := range ports.Codes {
		tell("refused: "+string(code), refusal(ports.InField(code, "WorkItem.Status", "is wrong")))
	}
	over := ports.OverLimit("WorkItem", "bytes", 64, 65)
	tell("refused: over a limit", refusal(over))
	tell("refused quietly", quiet(ports.Reflush, refusal(over)))
	tell("set aside", Answer{Situation: SetAside, Seq: 7, Backend: "local", Err: ports.Errorf(ports.BackendGone, "local", "the plugin died")})
	tell("journal full", refusal(ports.Errorf(ports.Full, "journal", "no room")))
	tell("one record", Answer{Backend: "b", Payload: "WorkItem", Value: []byte(`{"a":1}`)})
	tell("no record", Answer{Situation: NotFound, Backend: "b", Payload: "WorkItem"})
	tell("a page", Answer{Backend: "b", Payload: "Events", List: true, Value: []byte(`[1]`), More: true, Cursor: "next\""})
	tell("an empty list, stale, incomplete", Answer{Backend: "b", Payload: "Events", List: true, Stale: true, Incomplete: true})
	tell("no backend for a list", Answer{Situation: Unavailable, Err: ports.Errorf(ports.Unavailable, "local", "is away"), Payload: "Events", List: true})
	const golden = "testdata/answers.golden"
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got.String()); d != "" {
		t.Errorf("the answers are told differently; -update writes the file anew\n%s", d)
	}
}

func TestEveryCodeHasAStatusAndEverySituationARow(t *testing.T) {
	t.Parallel()
	for _, code := range ports.Codes {
		if HTTPStatus(code) == 0 {
			t.Errorf("%s has no status", code)
		}
	}
	for s := Done; s <= Unavailable; s++ {
		if _, ok := situations[s]; !ok {
			t.Errorf("situation %d has no row", s)
		}
	}
}

func TestEveryDecisionHasItsAnswer(t *testing.T) {
	t.Parallel()
	conflict := ports.Errorf(ports.Conflict, "", "no")
	for outcome, want := range map[ports.Outcome][2]Situation{ // live, re-flush
		ports.Stored:         {Done, Done},
		ports.AlreadyPresent: {AlreadyPresent, AlreadyPresent},
		ports.AlreadyAbsent:  {AlreadyAbsent, AlreadyAbsent},
		ports.Missing:        {NotFound, NotFound},
		ports.Expired:        {Expired, Expired},
		ports.Refused:        {Refused, RefusedQuietly},
	} {
		for i, class := range []ports.Class{ports.Live, ports.Reflush} {
			if got := decided(class, ports.Decision{Outcome: outcome, Err: conflict}).Situation; got != want[i] {
				t.Errorf("%s, %s: %s, want %s", outcome, class, flagOf(got), flagOf(want[i]))
			}
		}
	}
}

// A plugin that lies must not bring down the host.
func TestARefusalWithoutAReasonIsStillARefusal(t *testing.T) {
	t.Parallel()
	a := decided(ports.Live, ports.Decision{Outcome: ports.Refused})
	if a.Situation != Refused || a.Err == nil || a.HTTPStatus() != 500 {
		t.Errorf("the answer is %d %s", a.HTTPStatus(), a.AppendJSON(nil))
	}
}
