package mesh

import (
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
)

func TestWhatStandsBetweenAHubAndTheMemberIsNamed(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const mine = "bcn-holdfast-1-1"
	both := []string{"QueuePersistence", "ManifestStore"}
	me := hubBeacon{BeaconID: mine, Name: "holdfast-1", Status: "Online", Capabilities: both}
	other := func(name string, capabilities ...string) hubBeacon {
		return hubBeacon{BeaconID: "bcn-" + name, Name: name, Status: "Online", Capabilities: capabilities}
	}
	tagged := func(status string, tag any) hubBeacon {
		b := other("db", "MeadowProxy")
		b.Status, b.Tags = status, map[string]any{"PersistenceConnectionID": tag}
		return b
	}
	here, there, id := "machine-1", "machine-2", "bcn-db"
	on := func(b hubBeacon, host *string) hubBeacon {
		b.HostID = host
		return b
	}
	bound := func(key, id string, length time.Duration) []hubBinding {
		return []hubBinding{{AffinityKey: key, BeaconID: id, ExpiresAt: isoTime(now.Add(length))}}
	}
	for _, c := range []struct {
		name string
		see  sight
		says string // "" for nothing
	}{
		{"nothing", sight{beacons: []hubBeacon{me}}, ""},
		{"nothing, where nothing can be seen", sight{}, ""},
		{"its own machine", sight{beacons: []hubBeacon{on(me, &here)}}, ""},
		{"another machine of its name", sight{beacons: []hubBeacon{on(me, &there)}}, `"machine-2" registers as "holdfast-1" too`},
		{"an assignment", sight{beacons: []hubBeacon{me}, assignments: map[string]hubAssignment{"Queue": {State: "bootstrapped", AssignedBeaconID: &id}}}, `assigned to the databeacon "bcn-db" (bootstrapped)`},
		{"one of manifests alone", sight{beacons: []hubBeacon{me}, assignments: map[string]hubAssignment{"Queue": {State: "unassigned"}, "Manifest": {State: "waiting-for-beacon"}}}, "(waiting-for-beacon)"},
		{"no assignment", sight{beacons: []hubBeacon{me}, assignments: map[string]hubAssignment{"Queue": {State: "unassigned"}, "Manifest": {State: "unassigned"}}}, ""},
		{"a tag", sight{beacons: []hubBeacon{me, tagged("Online", 3.0)}}, `"db" is tagged`},
		{"the tag of one that is away", sight{beacons: []hubBeacon{me, tagged("Offline", 3.0)}}, ""},
		{"an empty tag", sight{beacons: []hubBeacon{me, tagged("Online", "")}}, ""},
		{"an older beacon", sight{beacons: []hubBeacon{other("store", "QueuePersistence"), me}}, `"store" offers QueuePersistence and comes before`},
		{"an older beacon of manifests", sight{beacons: []hubBeacon{other("store", "ManifestStore"), me}}, `"store" offers ManifestStore`},
		{"a younger one", sight{beacons: []hubBeacon{me, other("store", both...)}}, ""},
		{"one of something else", sight{beacons: []hubBeacon{other("worker", "Echo"), me}}, ""},
		{"a binding", sight{beacons: []hubBeacon{me, other("db", "MeadowProxy")}, bindings: bound("queue-persistence", "bcn-db", time.Minute)}, `under "queue-persistence" is bound to the beacon "db"`},
		{"a binding of manifests", sight{beacons: []hubBeacon{me, other("db")}, bindings: bound("manifest-store", "bcn-db", time.Minute)}, `under "manifest-store"`},
		{"a binding that is over", sight{beacons: []hubBeacon{me, other("db")}, bindings: bound("queue-persistence", "bcn-db", -time.Second)}, ""},
		{"a binding to one that is gone", sight{beacons: []hubBeacon{me}, bindings: bound("queue-persistence", "bcn-db", time.Minute)}, ""},
		{"a binding to itself", sight{beacons: []hubBeacon{me}, bindings: bound("queue-persistence", mine, time.Minute)}, ""},
		{"a binding of another key", sight{beacons: []hubBeacon{me, other("db")}, bindings: bound("auth", "bcn-db", time.Minute)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			detail, remedy := c.see.obstacle(mine, "holdfast-1", here, now)
			if (c.says == "") != (detail == "") || !strings.Contains(detail, c.says) || (detail == "") != (remedy == "") {
				t.Errorf("it says %q, and helps with %q", detail, remedy)
			}
		})
	}
}

func TestAnObstacleIsSeenWhenItComesAndWhenItGoes(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	hub.Imagine(stock.Registration{Name: "store", Capabilities: []string{"QueuePersistence"}}, true)
	m := unjoined(t, url, quickCore(), nil)
	run(t, m)
	awaitMember(t, m, "the obstacle", func(s MemberStatus) bool { return s.State == MemberPassedOver && strings.Contains(s.Detail, `"store"`) })
	hub.Forget("store")
	awaitMember(t, m, "a free way", func(s MemberStatus) bool { return s.Joined() && s.Detail == "" })
	hub.Bootstrap()
	awaitMember(t, m, "an assignment", func(s MemberStatus) bool {
		return s.State == MemberPassedOver && strings.Contains(s.Detail, "assigned")
	})
}

// A binding that another beacon left behind keeps what a hub writes away from the member for an hour, and nobody tells it.
func TestABindingOfAnOlderStoreIsSeen(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	store := stock.NewPersistence().Beacon(stock.BeaconConfig{ServerURL: url, Name: "store"})
	t.Cleanup(store.Kill)
	if err := store.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	m := unjoined(t, url, quickCore(), nil)
	run(t, m)
	hub.Enqueue(stock.Spec{Capability: "Nobody"})
	awaitMember(t, m, "the other store", func(s MemberStatus) bool { return s.State == MemberPassedOver && strings.Contains(s.Detail, `"store"`) })
	store.Kill()
	awaitMember(t, m, "a free way", MemberStatus.Joined)
}
