package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"holdfast/adapters/mesh"
)

// The metrics of the mesh: the hub that beacons connect to, and the membership of somebody else's. They are read from the two's own
// status when somebody asks for them. Labels are bounded: no names of beacons.

// meshMetrics are those of a host. Either side may be missing.
type meshMetrics struct {
	hub    func() mesh.Status       // nil: no beacon is let in
	member func() mesh.MemberStatus // nil: no hub is joined
}

var _ prometheus.Collector = meshMetrics{}

func meshDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("holdfast_"+name, help, labels, nil)
}

var (
	descHubBeacons   = meshDesc("hub_beacons", "Beacons that the hub knows, connected or not.")
	descHubOnline    = meshDesc("hub_beacons_online", "Beacons that are connected.")
	descHubSockets   = meshDesc("hub_sockets", "Open sockets.")
	descHubOpen      = meshDesc("hub_works_open", "Works that are not done.")
	descHubWaiting   = meshDesc("hub_works_waiting", "Of those, the ones that wait for a slot.")
	descHubLingering = meshDesc("hub_works_lingering", "Of those, the ones that keep a slot although nobody waits for them any more.")
	descHubDone      = meshDesc("hub_works_total", "Works that ended, by how.", "outcome")
	descHubReports   = meshDesc("hub_reports_dropped_total", "Reports of beacons that came too late, or about no work of this hub.", "kind")
	descHubFrames    = meshDesc("hub_frames_refused_total", "Frames that no beacon sends.")
	descHubRecording = meshDesc("hub_recording", "Writes about works that wait for the journal.")
	descHubLost      = meshDesc("hub_unrecorded_total", "Writes about works that were refused for good.")

	descMemberState  = meshDesc("member_state", "1 for the state that the membership of the joined hub is in.", "state")
	descMemberHand   = meshDesc("member_calls", "Calls of the joined hub that are being answered.")
	descMemberTaken  = meshDesc("member_calls_total", "Calls that the joined hub made.")
	descMemberRefuse = meshDesc("member_calls_refused_total", "Calls that were answered without success.")
	descMemberReport = meshDesc("member_reports_total", "Answers to the joined hub, by their way: its socket, HTTP since the socket was lost, or none since the hub was away.", "way")
	descMemberFrames = meshDesc("member_frames_refused_total", "Frames that no hub sends.")
	descMemberComes  = meshDesc("member_registrations_total", "Registrations at the joined hub.")
)

// memberStates are all of them, so that an alert can watch for one that is not there now.
var memberStates = []string{
	mesh.MemberConnecting, mesh.MemberRejected, mesh.MemberJoined, mesh.MemberPassedOver, mesh.MemberLeaving, mesh.MemberStopped,
}

func (m meshMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		descHubBeacons, descHubOnline, descHubSockets, descHubOpen, descHubWaiting, descHubLingering, descHubDone, descHubReports, descHubFrames, descHubRecording, descHubLost,
		descMemberState, descMemberHand, descMemberTaken, descMemberRefuse, descMemberReport, descMemberFrames, descMemberComes,
	} {
		ch <- d
	}
}

func (m meshMetrics) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v int, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(v), labels...)
	}
	counter := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, v, labels...)
	}
	if m.hub != nil {
		s := m.hub()
		gauge(descHubBeacons, s.Beacons)
		gauge(descHubOnline, s.Online)
		gauge(descHubSockets, s.Sockets)
		gauge(descHubOpen, s.Underway)
		gauge(descHubWaiting, s.Waiting)
		gauge(descHubLingering, s.Lingering)
		counter(descHubDone, float64(s.Completed), "completed")
		counter(descHubDone, float64(s.Failed), "failed")
		counter(descHubDone, float64(s.TimedOut), "timed_out")
		counter(descHubDone, float64(s.Broken), "broken")
		counter(descHubReports, float64(s.LateReports), "late")
		counter(descHubReports, float64(s.StrayReports), "stray")
		counter(descHubFrames, float64(s.RefusedFrames))
		gauge(descHubRecording, s.Recording)
		counter(descHubLost, float64(s.Unrecorded))
	}
	if m.member != nil {
		s := m.member()
		for _, state := range memberStates {
			is := 0
			if s.State == state {
				is = 1
			}
			gauge(descMemberState, is, state)
		}
		gauge(descMemberHand, s.InHand)
		counter(descMemberTaken, float64(s.Taken))
		counter(descMemberRefuse, float64(s.Refused))
		counter(descMemberReport, float64(s.Reported), "socket")
		counter(descMemberReport, float64(s.ReportedOverHTTP), "http")
		counter(descMemberReport, float64(s.Unreported), "none")
		counter(descMemberFrames, float64(s.RefusedFrames))
		counter(descMemberComes, float64(s.Registrations))
	}
}
