package wire_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

func TestATraceShowsWhatCrossedInTheWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	trace := &wire.Trace{}
	c, _ := connectTraced(t, &script{
		item: func(key string) (ports.Row, error) {
			if key == "none" {
				return ports.Row{}, ports.Errorf(ports.NotFound, "", "no such item")
			}
			return ports.Row{Kind: ports.KindItem, Key: key, Body: []byte(`{"WorkItemHash": "a", "n": 1.0}`)}, nil
		},
	}, trace)
	for _, key := range []string{"a", "none"} {
		_, _ = c.Item(t.Context(), key)
	}
	want := []wire.Exchange{
		{Call: "Item", Request: `{"key":"a"}`, Answer: `{"row":{"kind":"KIND_ITEM","key":"a","body":{"WorkItemHash": "a", "n": 1.0}}}`},
		{Call: "Item", Request: `{"key":"none"}`, Err: "not_found: no such item"},
	}
	got := trace.Exchanges()
	if len(got) == 2 {
		got[0].Answer = strings.ReplaceAll(got[0].Answer, `"first":{},`, "")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestATraceShowsBothSidesOfAStream(t *testing.T) {
	t.Parallel()
	trace := &wire.Trace{}
	c, _ := connectTraced(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) { return atOnce(b), nil }}, trace)
	pending, err := c.Commit(t.Context(), batch(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pending.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := trace.Exchanges()
	if len(got) != 2 || got[0].Call != "Commit" || !strings.Contains(got[0].Request, `"record":{"WorkItemHash":"wi-1"}`) || got[1].Answer == "" {
		t.Errorf("%+v", got)
	}
}

func TestATraceKeepsTheLastCallsAndCutsThem(t *testing.T) {
	t.Parallel()
	trace := &wire.Trace{}
	c, _ := connectTraced(t, &script{put: func(b ports.Batch) (ports.Applied, error) { return ports.Applied{Done: len(b.Rows)}, nil }}, trace)
	for i := range 60 {
		size := 10
		switch i {
		case 58:
			size = 20_000
		case 59:
			size = 2 << 20
		}
		body := `{"n":` + strconv.Itoa(i) + `,"x":"` + strings.Repeat("x", size) + `"}`
		if _, err := c.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{{Kind: ports.KindItem, Key: "a", Body: []byte(body)}}}); err != nil {
			t.Fatal(err)
		}
	}
	got := trace.Exchanges()
	if len(got) != 50 || !strings.Contains(got[0].Request, `{"n":10,`) {
		t.Fatalf("%d are kept, the first is %+v", len(got), got[0])
	}
	if cut := got[48].Request; len(cut) > 9000 || !strings.HasSuffix(cut, " more bytes)") {
		t.Errorf("a long one has %d bytes and ends with %q", len(cut), cut[len(cut)-40:])
	}
	if huge := got[49].Request; !strings.HasPrefix(huge, "(a PutRequest of 2097") {
		t.Errorf("a huge one is shown as %.100q", huge)
	}
}
