package sdk_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"holdfast/plugins/sdk"
	"holdfast/ports"
)

func event(guid, order, body string) ports.Row {
	return ports.Row{Kind: ports.KindEvent, Key: "w", GUID: guid, Body: []byte(body), First: ports.First{OrderKey: order}}
}

func keyOf(rows ...ports.Row) sdk.Readers {
	return func(_ context.Context, key string) ([]ports.Row, error) {
		return slices.DeleteFunc(slices.Clone(rows), func(r ports.Row) bool { return key != "" && r.Key != key }), nil
	}
}

func TestWhatReadsTheRowsOfAKeyReadsEachRecordOfIt(t *testing.T) {
	t.Parallel()
	item, manifest := ports.Row{Kind: ports.KindItem, Key: "w", Body: []byte(`{"a":1}`)}, ports.Row{Kind: ports.KindManifest, Key: "w", Body: []byte(`{"b":1}`)}
	read := keyOf(manifest, item)
	if got, err := read.Item(t.Context(), "w"); err != nil || string(got.Body) != `{"a":1}` {
		t.Errorf("the item is %s, %v", got.Body, err)
	}
	if got, err := read.Manifest(t.Context(), "w"); err != nil || string(got.Body) != `{"b":1}` {
		t.Errorf("the manifest is %s, %v", got.Body, err)
	}
	if _, err := read.Item(t.Context(), "x"); ports.CodeOf(err) != ports.NotFound {
		t.Errorf("an unknown item: %v", err)
	}
}

func TestEventsComeInTheirOrderAndGoOnBehindACursor(t *testing.T) {
	t.Parallel()
	read := keyOf(event("c", "2", `{}`), event("b", "1", `{}`), event("a", "2", `{}`), event("d", "3", `{}`))
	for _, c := range []struct {
		desc bool
		want []string
	}{{false, []string{"b", "a", "c", "d"}}, {true, []string{"d", "c", "a", "b"}}} {
		for limit := 1; limit <= 5; limit++ {
			var got []string
			q := ports.EventQuery{Key: "w", Desc: c.desc, Limit: limit, Bodies: true}
			for range 5 {
				p, err := read.Events(t.Context(), q)
				if err != nil || len(p.Rows) > limit {
					t.Fatalf("%d rows, %v", len(p.Rows), err)
				}
				for _, r := range p.Rows {
					got = append(got, r.GUID)
				}
				if q.After = p.Next; p.Next == nil {
					break
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("desc %v in pages of %d: %v", c.desc, limit, got)
			}
		}
	}
}

func TestEventsWithoutBodiesLackTheirPayloadAndNothingElse(t *testing.T) {
	t.Parallel()
	stored := event("a", "1", `{"EventGUID":"a","Payload":{"x":[1]},"N":1.50}`)
	read := keyOf(stored)
	p, err := read.Events(t.Context(), ports.EventQuery{Key: "w"})
	if err != nil || len(p.Rows) != 1 || string(p.Rows[0].Body) != `{"EventGUID":"a","N":1.50}` {
		t.Errorf("got %s, %v", p.Rows[0].Body, err)
	}
}

func TestAPageIsCutAtWhatItMayHold(t *testing.T) {
	t.Parallel()
	var rows []ports.Row
	for i := range 5 {
		rows = append(rows, ports.Row{Kind: ports.KindAttempt, Key: "w", Number: int64(i), Body: make([]byte, 6<<20)})
	}
	read := keyOf(rows...)
	p, err := read.Attempts(t.Context(), ports.AttemptQuery{Key: "w"})
	if err != nil || len(p.Rows) != 2 || p.Next == nil || p.Next.Num != 1 {
		t.Errorf("%d rows, next %+v, %v", len(p.Rows), p.Next, err)
	}
}

func ExampleMemory() {
	rows := sdk.Memory{}
	rows.Put(ports.Row{Kind: ports.KindItem, Key: "w", Body: []byte("1")})
	rows.Put(ports.Row{Kind: ports.KindAttempt, Key: "w", Number: 1})
	rows.Put(ports.Row{Kind: ports.KindItem, Key: "w", Body: []byte("2")})
	rows.Put(ports.Row{Kind: ports.KindAttempt, Key: "w", Number: 1, Gone: true})
	for _, r := range rows.Of("w") {
		fmt.Println(r.Kind, string(r.Body))
	}
	// Output: WorkItem 2
}
