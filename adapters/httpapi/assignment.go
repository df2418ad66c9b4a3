package httpapi

import (
	"net/http"

	"holdfast/core"
	"holdfast/ports"
)

// assign has a connection of a beacon keep one family or all, or with Clear none:
//
//	{"BeaconID": "databeacon", "IDBeaconConnection": 3, "Family": "Queue"}
//	{"Clear": true}
//
// How it stands then is in the answer, and in the status.
func (a *API) assign(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct {
		BeaconID           string
		IDBeaconConnection int64
		Family             string
		Clear              bool
	}
	err := a.order(w, r, &order)
	var families []ports.Family
	if err == nil && order.Family != "" {
		var f ports.Family
		f, err = familyOf(order.Family)
		families = append(families, f)
	}
	switch {
	case err != nil:
	case order.Clear && (order.BeaconID != "" || order.IDBeaconConnection != 0):
		err = ports.InField(ports.Invalid, "Clear", "goes without a BeaconID and an IDBeaconConnection")
	case order.Clear:
		err = a.host.Unassign(families)
	default:
		err = a.host.Assign(families, order.BeaconID, order.IDBeaconConnection)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	a.log.Info("the databeacon that keeps history is assigned", "beacon", printable(order.BeaconID), "connection", order.IDBeaconConnection,
		"families", families, "clear", order.Clear, "actor", who.name)
	respondValue(w, "Assignments", ofFamilies(a.host.Assignments(), families))
}

// ofFamilies leaves those of some families; of all when none is named.
func ofFamilies(list []core.AssignmentStatus, families []ports.Family) []core.AssignmentStatus {
	kept := []core.AssignmentStatus{}
	for _, s := range list {
		if len(families) == 0 || s.Family == families[0] {
			kept = append(kept, s)
		}
	}
	return kept
}
