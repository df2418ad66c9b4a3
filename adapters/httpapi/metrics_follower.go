package httpapi

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"holdfast/core"
)

// The metrics of followers, one set for each backend that is not the local store and each family.

var (
	descFollowerState     = desc("follower_state", "1 for the state that a follower is in.", "backend", "family", "state")
	descFollowerSuspect   = desc("follower_suspect", "1 while a follower's last probe was not answered in time.", "backend", "family")
	descFollowerBehind    = desc("follower_behind", "Seqs that the local store is ahead of a follower.", "backend", "family")
	descFollowerAge       = desc("follower_behind_seconds", "How long a follower has not had everything; 0 when it has.", "backend", "family")
	descFollowerUnsettled = desc("follower_unsettled", "Keys of which a follower does not have the present state, or may not.", "backend", "family", "kind")
	descFollowerCopied    = desc("follower_rows_copied_total", "Rows that were put into a follower since the start.", "backend", "family")
)

var followerDescs = []*prometheus.Desc{descFollowerState, descFollowerSuspect, descFollowerBehind, descFollowerAge, descFollowerUnsettled, descFollowerCopied}

func followerSamples(backend string, f *core.FollowerStatus, gauge gauges, counter counters) {
	family := strings.ToLower(string(f.Family))
	for _, state := range states {
		gauge(descFollowerState, truth(f.State == state), backend, family, state)
	}
	gauge(descFollowerSuspect, truth(f.Suspect), backend, family)
	gauge(descFollowerBehind, float64(f.Behind), backend, family)
	gauge(descFollowerAge, float64(f.BehindMs)/1000, backend, family)
	for _, k := range []struct {
		kind string
		n    int
	}{{"refused", f.Unsettled}, {"in_doubt", f.InDoubt}, {"discarded", f.Discarded}} {
		gauge(descFollowerUnsettled, float64(k.n), backend, family, k.kind)
	}
	counter(descFollowerCopied, f.Copied, backend, family)
}
