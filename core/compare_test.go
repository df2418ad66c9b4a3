package core

import (
	"reflect"
	"testing"

	"holdfast/ports"
)

func TestTwoRowsAreEqualWhenTheyAreTheSameRecord(t *testing.T) {
	t.Parallel()
	item := func(body string, edit func(*ports.First)) ports.Row {
		r := itemRow("w", "", 1)
		if r.Body = []byte(body); edit != nil {
			edit(&r.First)
		}
		return r
	}
	event := func(body string, edit func(*ports.First)) ports.Row {
		r := eventRow("w", "g", "", 1)
		if r.Body = []byte(body); edit != nil {
			edit(&r.First)
		}
		return r
	}
	manifest := func(body string) ports.Row {
		r := manifestRow("m", "", 1)
		r.Body = []byte(body)
		return r
	}
	changed := item(`{"WorkItemHash":"w"}`, nil)
	changed.Change = ports.Change{Host: "other", Seq: 7}
	cases := map[string]struct {
		a, b   ports.Row
		differ []string
	}{
		"same":                   {item(`{"WorkItemHash":"w"}`, nil), item(`{"WorkItemHash":"w"}`, nil), nil},
		"another change":         {item(`{"WorkItemHash":"w"}`, nil), changed, nil},
		"another order":          {item(`{"A":1,"WorkItemHash":"w","B":2}`, nil), item(`{"B":2,"A":1,"WorkItemHash":"w"}`, nil), nil},
		"a column":               {item(`{"Status":"a"}`, nil), item(`{"Status":"b"}`, nil), []string{"Status"}},
		"null is not nothing":    {item(`{"Status":null}`, nil), item(`{}`, nil), []string{"Status"}},
		"another spelling":       {item(`{"Health":1.0}`, nil), item(`{"Health":1}`, nil), []string{"Health"}},
		"others, both ways":      {item(`{"Y":1,"Z":1}`, nil), item(`{"X":1,"Z":2}`, nil), []string{"X", "Y", "Z"}},
		"name or value":          {item(`{"X":"1","Y":""}`, nil), item(`{"X":"","Y":"1"}`, nil), []string{"X", "Y"}},
		"when it was received":   {item(`{}`, nil), item(`{}`, func(f *ports.First) { f.ReceivedAt = "x" }), []string{"ReceivedAt"}},
		"its place in the list":  {item(`{}`, nil), item(`{}`, func(f *ports.First) { f.EnqueuedKey = "x" }), []string{"EnqueuedKey"}},
		"who and where from":     {item(`{}`, nil), item(`{}`, func(f *ports.First) { f.Actor, f.Origin = "x", "y" }), []string{"Actor", "Origin"}},
		"a stamp of events":      {item(`{}`, nil), item(`{}`, func(f *ports.First) { f.EmittedAt = "x" }), nil},
		"a stamp of items":       {event(`{"EventGUID":"g"}`, nil), event(`{"EventGUID":"g"}`, func(f *ports.First) { f.EnqueuedKey = "x" }), nil},
		"when it was emitted":    {event(`{"EventGUID":"g"}`, nil), event(`{"EventGUID":"g"}`, func(f *ports.First) { f.EmittedAt = "x" }), []string{"EmittedAt"}},
		"a time of its own":      {event(`{"EmittedAt":"t"}`, nil), event(`{"EmittedAt":"t"}`, func(f *ports.First) { f.EmittedAt = "x" }), nil},
		"the GUID shown or not":  {event(`{"EventGUID":"g","Seq":1}`, nil), event(`{"Seq":1}`, nil), nil},
		"no record":              {item(`{"A":1,"A":2}`, nil), item(`{"A":1}`, nil), []string{"ManifestJSON"}},
		"manifests":              {manifest(`{"Hash":"m","X":1}`), manifest(` {"Hash":"m","X":1}` + "\n"), nil},
		"the text of a manifest": {manifest(`{"Hash":"m","X":1}`), manifest(`{"X":1,"Hash":"m"}`), []string{"ManifestJSON"}},
		"a member of a manifest": {manifest(`{"Hash":"m","X":1}`), manifest(`{"Hash":"m","X":2}`), []string{"X"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if equal := imprintOf(&c.a) == imprintOf(&c.b); equal != (c.differ == nil) {
				t.Errorf("equal: %t", equal)
			}
			if got := differing(&c.a, &c.b); !reflect.DeepEqual(got, c.differ) {
				t.Errorf("they differ in %v, want %v", got, c.differ)
			}
		})
	}
}
