package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/mesh"
	"holdfast/core"
	"holdfast/ports"
)

func TestTheMetricsTellOfTheMesh(t *testing.T) {
	t.Parallel()
	hub := func() mesh.Status {
		return mesh.Status{Beacons: 3, Online: 2, Underway: 7, Waiting: 4, Lingering: 1, Completed: 11, Failed: 12, TimedOut: 13, Broken: 14, LateReports: 15, Unrecorded: 16}
	}
	member := func() mesh.MemberStatus {
		return mesh.MemberStatus{State: mesh.MemberPassedOver, InHand: 5, Taken: 21, Refused: 22, Reported: 23, Unreported: 24, Registrations: 25}
	}
	for name, c := range map[string]struct {
		metrics meshMetrics
		want    []string
		never   string
	}{
		"both": {meshMetrics{hub, member}, []string{
			"holdfast_hub_beacons 3", "holdfast_hub_beacons_online 2", "holdfast_hub_works_open 7", "holdfast_hub_works_waiting 4", "holdfast_hub_works_lingering 1",
			`holdfast_hub_works_total{outcome="completed"} 11`, `holdfast_hub_works_total{outcome="timed_out"} 13`, `holdfast_hub_reports_dropped_total{kind="late"} 15`,
			"holdfast_hub_unrecorded_total 16", `holdfast_member_state{state="passed-over"} 1`, `holdfast_member_state{state="joined"} 0`, "holdfast_member_calls 5",
			"holdfast_member_calls_total 21", "holdfast_member_calls_refused_total 22", `holdfast_member_reports_total{way="none"} 24`, "holdfast_member_registrations_total 25",
			`holdfast_assignment_state{family="queue",state="error"} 1`, `holdfast_assignment_state{family="queue",state="unassigned"} 0`,
		}, "nothing"},
		"neither": {meshMetrics{}, []string{"holdfast_build_info"}, "holdfast_hub_beacons"},
	} {
		host := &standIn{status: core.Status{Assignments: []core.AssignmentStatus{{Family: ports.Queue, State: "error"}}}}
		api, err := httpapi.New(httpapi.Config{Host: host, Loopback: true, Metrics: []prometheus.Collector{c.metrics}, Logger: hclog.NewNullLogger()})
		if err != nil {
			t.Fatal(err)
		}
		told := httptest.NewRecorder()
		request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		request.Host = "localhost"
		api.ServeHTTP(told, request)
		text := told.Body.String()
		for _, want := range c.want {
			if !strings.Contains(text, "\n"+want) {
				t.Errorf("%s: it does not have %s", name, want)
			}
		}
		if strings.Contains(text, c.never) {
			t.Errorf("%s: it has %s", name, c.never)
		}
	}
}
