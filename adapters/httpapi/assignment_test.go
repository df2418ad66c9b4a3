package httpapi

import (
	"slices"
	"strings"
	"testing"
)

func TestADatabeaconIsAssignedToOneFamilyOrAll(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		told   string
		status int
		shown  string
	}{
		`{"BeaconID":"d","IDBeaconConnection":3}`:                     {"[]d3", 200, `"Assignments":[{"Family":"Queue","State":"bootstrapped","BeaconID":"d"},{"Family":"Manifest","State":"unassigned"}]`},
		`{"BeaconID":"d","IDBeaconConnection":3,"Family":"queue"}`:    {"[Queue]d3", 200, `"Assignments":[{"Family":"Queue","State":"bootstrapped","BeaconID":"d"}]`},
		`{"BeaconID":"d","IDBeaconConnection":3,"Family":"Manifest"}`: {"[Manifest]d3", 200, `"Assignments":[{"Family":"Manifest","State":"unassigned"}]`},
		`{"Clear":true}`:                  {"[]none", 200, `"Success":true`},
		`{"Clear":true,"Family":"Queue"}`: {"[Queue]none", 200, `"Success":true`},
		`{"Clear":true,"BeaconID":"d"}`:   {"", 400, `"Field":"Clear"`},
		`{}`:                              {"", 400, `"Field":"BeaconID"`},
		`{"BeaconID":"d","IDBeaconConnection":"three"}`: {"", 400, `"Field":"body"`},
		`{"BeaconID":"d","Family":"both"}`:              {"", 400, `"Code":"invalid"`},
		`{"BeaconID":"d","Connection":3}`:               {"", 400, `"Field":"body"`},
	} {
		host := &fakeHost{}
		c := serve(t, host)
		got := c.send("POST", "/v1/assignment", typeJSON, body)
		if got.status != want.status || !strings.Contains(got.body, want.shown) || strings.Join(host.assigned, "; ") != want.told {
			t.Errorf("%s: %d %s, told %v", body, got.status, got.body, slices.Clone(host.assigned))
		}
	}
}
