package ports

import (
	"encoding/json"
	"testing"
)

func TestTheKeeperIsTheAssignedBeaconOrTheOneThatOffersItself(t *testing.T) {
	t.Parallel()
	tag := func(value string) map[string]json.RawMessage {
		return map[string]json.RawMessage{ConnectionTag: json.RawMessage(value)}
	}
	proxy := []string{"DataBeaconAccess", MeadowProxy}
	list := []Beacon{
		{Name: "worker", ID: "bcn-worker-1", Online: true, Capabilities: []string{"Shell"}, Tags: tag("9")},
		{Name: "away", ID: "bcn-away-1", Capabilities: proxy, Tags: tag("8")},
		{Name: "empty", ID: "bcn-empty-1", Online: true, Capabilities: proxy, Tags: tag(`""`)},
		{Name: "Store #1", ID: "bcn-store--1-1700000000002", Online: true, Capabilities: proxy, Tags: tag(`"7"`)},
		{Name: "other", ID: "bcn-other-1", Online: true, Capabilities: proxy, Tags: tag("6")},
	}
	to := func(name string) map[Family]Assignment {
		return map[Family]Assignment{Queue: {BeaconID: name, IDBeaconConnection: 3}}
	}
	for _, c := range []struct {
		name       string
		assigned   map[Family]Assignment
		beacon     string
		connection int64
		tagged, ok bool
	}{
		{"by its name", to("other"), "other", 3, false, true},
		{"by its id", to("bcn-other-1"), "other", 3, false, true},
		{"by an id that it had before", to("bcn-store--1-1600000000001"), "Store #1", 3, false, true},
		{"also when it is away", to("away"), "away", 3, false, true},
		{"also when nobody knows it", to("nobody"), "", 3, false, true},
		{"a name that only looks like an id", to("bcn-other-x"), "", 3, false, true},
		{"by its tag, the first one that is online and can", nil, "Store #1", 7, true, true},
		{"another family's assignment is none", map[Family]Assignment{Manifest: {BeaconID: "other"}}, "Store #1", 7, true, true},
	} {
		k, ok := Beacons{List: list, Assigned: c.assigned}.Keeper(Queue)
		got := ""
		if k.Beacon != nil {
			got = k.Beacon.Name
		}
		if ok != c.ok || got != c.beacon || k.Connection != c.connection || k.Tagged != c.tagged {
			t.Errorf("%s: got %q, connection %d, tagged %v, %v; want %q, %d, %v, %v", c.name, got, k.Connection, k.Tagged, ok, c.beacon, c.connection, c.tagged, c.ok)
		}
	}
	if k, ok := (Beacons{List: list[:3]}).Keeper(Queue); ok {
		t.Errorf("without an assignment or a tag there is a keeper: %+v", k)
	}
}
