package wire_test

import (
	"context"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"holdfast/ports"
)

func drawCursor(t *rapid.T) *ports.Cursor {
	if rapid.Bool().Draw(t, "first page") {
		return nil
	}
	return &ports.Cursor{
		Sort: rapid.String().Draw(t, "sort"), Key: rapid.String().Draw(t, "key"),
		Kind: rapid.SampledFrom(append([]ports.Kind{""}, ports.Kinds...)).Draw(t, "kind"), Num: rapid.Int64().Draw(t, "num"),
	}
}

func drawRow(t *rapid.T) ports.Row {
	text := func(name string) string { return rapid.String().Draw(t, name) }
	r := ports.Row{
		Kind: rapid.SampledFrom(ports.Kinds).Draw(t, "kind"), Key: text("key"), GUID: text("guid"), Number: rapid.Int64().Draw(t, "number"),
		Gone: rapid.Bool().Draw(t, "gone"),
		First: ports.First{
			ReceivedAt: text("received"), OrderKey: text("order"), EnqueuedKey: text("enqueued"), EmittedAt: text("emitted"),
			Actor: text("actor"), Origin: text("origin"),
		},
		Change: ports.Change{Host: text("host"), Seq: rapid.Uint64().Draw(t, "seq")},
	}
	if !r.Gone {
		r.Body = rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "body")
	}
	return r
}

func drawPosition(t *rapid.T) ports.Position {
	return ports.Position{
		StoreID: rapid.String().Draw(t, "store"), Epoch: rapid.String().Draw(t, "epoch"),
		Seqs: rapid.MapOf(rapid.String(), rapid.Uint64()).Draw(t, "seqs"),
	}
}

// sameThing treats nil and empty lists alike; they mean the same everywhere.
func sameThing(t *rapid.T, what string, sent, got any) {
	if diff := cmp.Diff(sent, got, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("%s (-sent +got):\n%s", what, diff)
	}
}

func TestWhatIsPutArrivesAsItWasGiven(t *testing.T) {
	var got atomic.Pointer[ports.Batch]
	client, _ := connect(t, &script{put: func(b ports.Batch) (ports.Applied, error) {
		got.Store(&b)
		return ports.Applied{Done: len(b.Rows)}, nil
	}})
	rapid.Check(t, func(t *rapid.T) {
		sent := ports.Batch{Family: rapid.SampledFrom(ports.Families).Draw(t, "family"), Rows: rapid.SliceOfN(rapid.Custom(drawRow), 0, 5).Draw(t, "rows")}
		if rapid.Bool().Draw(t, "moves") {
			p := drawPosition(t)
			sent.Position = &p
			after := drawPosition(t)
			sent.After = &after
		}
		applied, err := client.Put(context.Background(), sent)
		if err != nil || applied.Done != len(sent.Rows) {
			t.Fatalf("%v, %v", applied, err)
		}
		sameThing(t, "batch", sent, *got.Load())
	})
}

func TestAPutThatStopsSaysWhereAndWhy(t *testing.T) {
	client, _ := connect(t, &script{put: func(ports.Batch) (ports.Applied, error) {
		return ports.Applied{Done: 1}, ports.InField(ports.Invalid, "Priority", "is out of range")
	}})
	rows := []ports.Row{{Kind: ports.KindItem, Key: "a", Body: []byte("{}")}, {Kind: ports.KindItem, Key: "b", Body: []byte("{}")}}
	applied, err := client.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: rows})
	if applied.Done != 1 || ports.CodeOf(err) != ports.Invalid || ports.AsError(err).Field != "Priority" {
		t.Errorf("got %v, %v", applied, err)
	}
}

func TestQueriesAndPagesArriveAsTheyWereGiven(t *testing.T) {
	var got atomic.Pointer[ports.ItemQuery]
	var give atomic.Pointer[ports.Page]
	client, _ := connect(t, &script{items: func(q ports.ItemQuery) (ports.Page, error) {
		got.Store(&q)
		return *give.Load(), nil
	}})
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.String().Draw(t, name) }
		sent := ports.ItemQuery{
			Filter: ports.ItemFilter{
				Status: rapid.SliceOf(rapid.String()).Draw(t, "status"), Capability: text("capability"), Action: text("action"),
				RunID: text("run"), RunHash: text("hash"), OperationHash: text("operation"), AssignedBeaconID: text("beacon"),
				AffinityKey: text("affinity"), From: text("from"), To: text("to"), ErrorText: text("error"),
			},
			OrderBy: text("order"), Desc: rapid.Bool().Draw(t, "desc"), After: drawCursor(t), Limit: rapid.IntRange(0, 5000).Draw(t, "limit"),
			Bodies: rapid.Bool().Draw(t, "bodies"),
		}
		page := ports.Page{Rows: rapid.SliceOfN(rapid.Custom(drawRow), 0, 3).Draw(t, "rows"), Next: drawCursor(t), Partial: rapid.Bool().Draw(t, "partial")}
		give.Store(&page)
		answer, err := client.Items(context.Background(), sent)
		if err != nil {
			t.Fatal(err)
		}
		sameThing(t, "query", sent, *got.Load())
		sameThing(t, "page", page, answer)
	})
	if _, err := client.Items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Capability: "\xff"}}); ports.CodeOf(err) != ports.Invalid {
		t.Errorf("a filter that is no UTF-8: %v", err)
	}
}

func TestStandingAndOpeningArriveAsTheyWereGiven(t *testing.T) {
	var opened ports.Opening
	stands := ports.Standing{
		StoreID: "store", Empty: true, Nonce: "n", Early: 3,
		Marks: map[ports.Family]ports.Mark{ports.Queue: {Epoch: "e", Seq: 7}, ports.Manifest: {Epoch: "f"}},
	}
	at := ports.Position{StoreID: "store", Epoch: "e", Seqs: map[string]uint64{"host": 1 << 63}}
	client, _ := connect(t, &script{
		stand:    func(string) (ports.Standing, error) { return stands, nil },
		open:     func(o ports.Opening) error { opened = o; return nil },
		position: func() (ports.Position, error) { return at, nil },
	})
	standing, err := client.Stand(t.Context(), "host")
	if diff := cmp.Diff(stands, standing); err != nil || diff != "" {
		t.Errorf("standing: %v\n%s", err, diff)
	}
	opening := ports.Opening{
		HostID: "host", Nonce: "n", Next: "m", Retention: 36*time.Hour + time.Nanosecond,
		Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: "e", From: 8}},
		Resume: map[ports.Family]uint64{ports.Manifest: 0},
	}
	if err := client.Open(t.Context(), opening); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(opening, opened); diff != "" {
		t.Errorf("opening (-sent +got):\n%s", diff)
	}
	position, err := client.Position(t.Context(), ports.Queue)
	if err != nil || !maps.Equal(position.Seqs, at.Seqs) || position.StoreID != at.StoreID || position.Epoch != at.Epoch {
		t.Errorf("position: %v, %v", position, err)
	}
}

func TestADescriptionDeclaresThePowersThatTheBackendHas(t *testing.T) {
	said := ports.Description{
		Kind: "tape", Version: "1.2", Summary: "Keeps history on tape.", Families: ports.Families, Slots: 3,
		Options: []ports.Option{{Name: "path", Type: ports.OptionString, Default: "x", Required: true, Secret: true, Help: "h", Example: "e"}},
		OptOuts: []ports.OptOut{{Of: "put/position", Reason: "A tape has no place for one."}},
	}
	store := &script{describe: func() (ports.Description, error) { return said, nil }}
	client, _ := connect(t, store)
	d, err := client.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := said
	want.Powers = ports.PowersOf(store)
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("description (-want +got):\n%s", diff)
	}
	if _, has := ports.As[ports.ItemReader](client, d); !has {
		t.Error("a declared power is not there")
	}
	if _, has := ports.As[ports.Pruner](client, d); has {
		t.Error("a power that the backend lacks is there")
	}
	said.Powers = []string{"ItemReader"}
	if d, err = client.Describe(t.Context()); err != nil || len(d.Powers) != 1 {
		t.Errorf("an author's own list: %v, %v", d.Powers, err)
	}
}

// choosy is configured before use.
type choosy struct {
	script
	given ports.Configuration
}

func (c *choosy) Configure(_ context.Context, given ports.Configuration) error {
	if len(given.Options) == 0 {
		return ports.InField(ports.Invalid, "path", "is missing")
	}
	c.given = given
	return nil
}

func TestNothingButDescribeBeforeConfigure(t *testing.T) {
	store := &choosy{}
	store.probe = func(context.Context) error { return nil }
	client, _ := connect(t, store)
	if err := client.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("before: %v", err)
	}
	if err := client.Configure(t.Context(), ports.Configuration{}); ports.AsError(err).Field != "path" {
		t.Errorf("a refusal: %v", err)
	}
	given := ports.Configuration{Name: "local", DataDir: "data", Options: []byte(`{"path":"x"}`), Mesh: ports.MeshAccess{Socket: "/run/m", Token: "t"}}
	if err := client.Configure(t.Context(), given); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(given, store.given); diff != "" {
		t.Errorf("configuration (-sent +got):\n%s", diff)
	}
	if err := client.Probe(t.Context(), ports.Queue); err != nil {
		t.Errorf("after: %v", err)
	}
	if err := client.Configure(t.Context(), given); ports.CodeOf(err) != ports.Conflict {
		t.Errorf("twice: %v", err)
	}
}
