package conformance

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"holdfast/ports"
)

// tape is the least that a backend can be: Put and one reader, all in memory. What it does not keep of the contract it says.
type tape struct {
	mu     sync.Mutex
	events map[string]ports.Row // by EventGUID
}

func newTape() *tape { return &tape{events: map[string]ports.Row{}} }

func (t *tape) Describe(context.Context) (ports.Description, error) {
	return ports.Description{
		Kind: "tape", Version: "0.1", Summary: "remembers events until it ends", Families: []ports.Family{ports.Queue},
		OptOuts: []ports.OptOut{
			{Of: "durability", Reason: "keeps everything in memory"},
			{Of: "position", Reason: "is copied from the start each time"},
		},
	}, nil
}

func (t *tape) Probe(context.Context, ports.Family) error { return nil }

func (t *tape) Position(context.Context, ports.Family) (ports.Position, error) {
	return ports.Position{}, nil
}

func (t *tape) Put(_ context.Context, b ports.Batch) (ports.Applied, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, r := range b.Rows {
		switch {
		case r.Kind != ports.KindEvent:
		case r.Gone:
			delete(t.events, r.GUID)
		case !bytes.HasPrefix(r.Body, []byte("{")) || !bytes.HasSuffix(r.Body, []byte("}")):
			return ports.Applied{Done: i}, ports.Errorf(ports.Invalid, "put", "row %d has no JSON object for a body", i)
		default:
			t.events[r.GUID] = r
		}
	}
	return ports.Applied{Done: len(b.Rows)}, nil
}

func (t *tape) Events(_ context.Context, q ports.EventQuery) (page ports.Page, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rows []ports.Row
	for _, r := range t.events {
		if r.Key == q.Key {
			rows = append(rows, r)
		}
	}
	rows = inOrder(rows)
	if q.Desc {
		slices.Reverse(rows)
	}
	size := 0
	for _, r := range rows {
		if q.After != nil && passed(r, *q.After, q.Desc) {
			continue
		}
		if n := len(page.Rows); n == q.Limit || n > 0 && size+len(r.Body) > ports.MaxPageBytes {
			page.Next = cursorOf(page.Rows[n-1])
			break
		}
		if size += len(r.Body); !q.Bodies {
			r.Body = rebuilt(members(r.Body), func(m ports.Member) bool { return m.Name != "Payload" })
		}
		page.Rows = append(page.Rows, r)
	}
	return page, nil
}

// passed says whether a row does not stand behind a cursor.
func passed(r ports.Row, after ports.Cursor, desc bool) bool {
	place := strings.Compare(r.First.OrderKey, after.Sort)
	if place == 0 {
		place = strings.Compare(r.GUID, after.Key)
	}
	if desc {
		return place >= 0
	}
	return place <= 0
}

func (t *tape) Close() error { return nil }

func TestABackendOfPutAndOneReaderIsCertified(t *testing.T) {
	t.Parallel()
	report, err := Check(t.Context(), InProcess(func() ports.Backend { return newTape() }), "", func(r Result) {
		if r.Outcome == Failed {
			t.Errorf("%s\n%s\n%s", r.Case.Path(), strings.Join(r.Reason, "\n"), traced(r.Trace))
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	badge := report.Badge()
	for _, part := range []string{
		"certified holdfast.backend.v1: ", "Manifest (not kept), ", "LocalStore", " (not offered), ",
		"position (is copied from the start each time)", "durability (keeps everything in memory)",
	} {
		if !strings.Contains(badge, part) {
			t.Errorf("the badge %q lacks %q", badge, part)
		}
	}
	if report.Tried() < 25 {
		t.Errorf("only %d cases were tried", report.Tried())
	}
}

// A backend is judged through whatever it offers, and never asked for more.
func TestABackendIsJudgedByWhatItOffers(t *testing.T) {
	t.Parallel()
	light := suite(slices.DeleteFunc(Cases(), func(c Case) bool { return c.Topic == "limits" || c.Path() == "paging/bytes" }))
	both := ports.Families
	for name, offer := range map[string]struct {
		families []ports.Family
		powers   []string
		least    int // cases that must be tried
	}{
		"nothing but Put":          {both, []string{}, 18},
		"work items alone":         {[]ports.Family{ports.Queue}, []string{"ItemReader"}, 50},
		"events alone":             {[]ports.Family{ports.Queue}, []string{"EventReader"}, 45},
		"attempts alone":           {both, []string{"AttemptReader"}, 40},
		"manifests alone":          {[]ports.Family{ports.Manifest}, []string{"ManifestReader"}, 45},
		"readers that can drain":   {both, []string{"ItemReader", "ManifestReader", "Drainer"}, 60},
		"the family of no reader":  {[]ports.Family{ports.Manifest}, []string{}, 18},
		"one call at a time":       {both, []string{"ItemReader", "EventReader"}, 50},
		"a store without the rest": {both, []string{"LocalStore", "ItemReader", "EventReader", "AttemptReader", "ManifestReader"}, 70},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := subject(func(right whole) *broken {
				return &broken{whole: right, describe: func(d ports.Description) ports.Description {
					d.Families, d.Powers = offer.families, offer.powers
					if name == "one call at a time" {
						d.Slots = 1
					}
					return d
				}}
			})
			report, err := light.check(t.Context(), s, "", func(r Result) {
				if r.Outcome == Failed {
					t.Errorf("%s\n%s\n%s", r.Case.Path(), strings.Join(r.Reason, "\n"), traced(r.Trace))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Tried() < offer.least {
				t.Errorf("only %d cases were tried: %s", report.Tried(), report.Badge())
			}
			t.Log(report.Badge())
		})
	}
}

func TestABackendThatReadsByKeyAloneIsAskedForNoList(t *testing.T) {
	t.Parallel()
	unimplemented := ports.Errorf(ports.Unimplemented, "list", "there is no such method")
	s := subject(func(right whole) *broken {
		return &broken{
			whole: right,
			describe: func(d ports.Description) ports.Description {
				d.Powers = []string{"ItemReader", "EventReader", "ManifestReader"}
				d.OptOuts = []ports.OptOut{{Of: "lists", Reason: "reads by key"}}
				return d
			},
			items:     func(context.Context, ports.ItemQuery) (ports.Page, error) { return ports.Page{}, unimplemented },
			manifests: func(context.Context, ports.ManifestQuery) (ports.Page, error) { return ports.Page{}, unimplemented },
		}
	})
	outcomes := map[string]Outcome{}
	report, err := Check(t.Context(), s, "", func(r Result) {
		if outcomes[r.Case.Path()] = r.Outcome; r.Outcome == Failed {
			t.Errorf("%s\n%s\n%s", r.Case.Path(), strings.Join(r.Reason, "\n"), traced(r.Trace))
		}
	})
	if err != nil || !strings.HasSuffix(report.Badge(), "lists (reads by key)") {
		t.Errorf("%q, %v", report.Badge(), err)
	}
	for path, want := range map[string]Outcome{
		"paging/items": OptedOut, "paging/manifests": OptedOut, "bytes/listed": OptedOut, "paging/events": Passed, "paging/cursors": Passed, "bytes/manifest": Passed,
	} {
		if outcomes[path] != want {
			t.Errorf("%s is %s, want %s", path, outcomes[path], want)
		}
	}
}
