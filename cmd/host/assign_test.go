package main

import (
	"strings"
	"testing"

	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

func TestAPersonAssignsADatabeacon(t *testing.T) {
	t.Parallel()
	host := &standIn{status: core.Status{Assignments: []core.AssignmentStatus{
		{Family: ports.Queue, State: "waiting-for-beacon", Backend: "databeacon", BeaconID: "d\x1b[1m", IDBeaconConnection: 3, Detail: "no beacon called d has registered", Remedy: "start it"},
		{Family: ports.Manifest, State: "bootstrapped", Backend: "databeacon", BeaconID: "m", IDBeaconConnection: 7, Tagged: true},
	}}}
	server := host.serve(t)
	at(t, server, "assign", "d", "3").wants(t, exitcode.OK, "ASSIGNED", `Queue     d\x1b[1m`, "3 ", "waiting-for-beacon", "has registered; start it", "m (by its tag)")
	at(t, server, "assign", "d", "3", "--family", "manifest").wants(t, exitcode.OK, "Manifest")
	at(t, server, "assign", "--clear").wants(t, exitcode.OK)
	at(t, server, "assign", "--clear", "--family=queue").wants(t, exitcode.OK)
	for _, wrong := range []string{"assign", "assign d", "assign d three", "assign d 3 --clear", "assign d 0"} {
		at(t, server, strings.Fields(wrong)...).wants(t, exitcode.Usage)
	}
	at(t, server, "assign", "d", "3", "--family=both").wants(t, exitcode.Usage, "both")
	want := "assign d 3 to [], assign d 3 to [Manifest], unassign [], unassign [Queue]"
	if got := strings.Join(host.orders, ", "); got != want {
		t.Errorf("the host was told %q, want %q", got, want)
	}
	at(t, server, "status").wants(t, exitcode.OK, "ASSIGNED", "m (by its tag)")
	at(t, server, "doctor").wants(t, exitcode.Failed, `warn  assigned queue     d\x1b[1m, connection 3: waiting-for-beacon; no beacon called d has registered; start it`,
		"ok    assigned manifest  m, connection 7, by its tag: bootstrapped")
}

func TestTheStatusIsSilentWhereNothingIsToBeAssigned(t *testing.T) {
	t.Parallel()
	host := &standIn{status: core.Status{
		Assignments: []core.AssignmentStatus{{Family: ports.Queue, State: "unassigned"}, {Family: ports.Manifest, State: "unassigned"}},
		Families:    []core.FamilyStatus{{Family: ports.Queue, Writes: core.WriteCounts{EarlyWaiting: 2, EarlyApplied: 3}}, {Family: ports.Manifest}},
	}}
	got := at(t, host.serve(t), "status")
	got.wants(t, exitcode.OK, "Queue, early writes of a hub: 2 wait for their items, 3 had theirs come, 0 were dropped")
	if strings.Contains(got.stdout, "ASSIGNED") || strings.Contains(got.stdout, "Manifest, early") {
		t.Errorf("it says %s", got.stdout)
	}
	host = &standIn{status: core.Status{Assignments: []core.AssignmentStatus{{Family: ports.Queue, State: "unassigned", Backend: "databeacon"}}}}
	at(t, host.serve(t), "doctor").wants(t, exitcode.Failed, "warn  assigned queue     nothing; run `holdfast assign BEACON CONNECTION`")
	host = &standIn{status: core.Status{Ready: true, Assignments: []core.AssignmentStatus{{Family: ports.Queue, State: "error", BeaconID: "d", IDBeaconConnection: 1, Detail: "no backend", Remedy: "add it"}}}}
	at(t, host.serve(t), "doctor").wants(t, exitcode.Failed, "fail  assigned queue     d, connection 1: error; no backend; add it")
}
