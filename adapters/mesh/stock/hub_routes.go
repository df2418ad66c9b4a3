package stock

// What the routes of a hub do: those of beacons, and those by which one looks at it.

import (
	"encoding/json"
	"net/http"
	"slices"
)

func (h *Hub) registerRoute(c call) (int, any) {
	var r Registration
	if !c.into(&r) || r.Name == "" || r.Capabilities == nil {
		return refusal(http.StatusBadRequest, "Name and Capabilities are required.")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	session := "anonymous"
	if user, id := h.session(c.request); user != "" {
		session = id
	}
	return http.StatusOK, h.register(r, &session).clone()
}

func (h *Hub) heartbeatRoute(c call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.beat(c.args[0]); b != nil {
		return http.StatusOK, b.clone()
	}
	return refusal(http.StatusNotFound, "Beacon not found.")
}

func (h *Hub) pollRoute(c call) (int, any) {
	id := text(c.body["BeaconID"])
	if id == "" {
		return refusal(http.StatusBadRequest, "BeaconID is required.")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if item := h.poll(id); item != nil {
		return http.StatusOK, outputs{"WorkItem": encode(h.delivery(item))}
	}
	return http.StatusOK, outputs{"WorkItem": nil}
}

func (h *Hub) completeRoute(c call) (int, any) {
	if err := h.Complete(c.args[0], Result{Outputs: c.body["Outputs"], Log: c.body["Log"]}); err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	return http.StatusOK, outputs{"Status": "Completed", "WorkItemHash": c.args[0]}
}

func (h *Hub) errorRoute(c call) (int, any) {
	if err := h.Fail(c.args[0], text(c.body["ErrorMessage"]), c.body["Log"]); err != nil {
		return refusal(http.StatusBadRequest, err.Error())
	}
	return http.StatusOK, outputs{"Status": "Failed", "WorkItemHash": c.args[0]}
}

func (h *Hub) progressRoute(c call) (int, any) {
	var p Progress
	c.into(&p)
	if !h.Report(c.args[0], p) {
		return refusal(http.StatusNotFound, "Work item not found or not running.")
	}
	return http.StatusOK, outputs{"Success": true, "WorkItemHash": c.args[0]}
}

func (h *Hub) deregisterRoute(c call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.deregister(c.args[0]) {
		return refusal(http.StatusNotFound, "Beacon not found.")
	}
	return http.StatusOK, outputs{"Status": "Deregistered", "BeaconID": c.args[0]}
}

func (h *Hub) dispatchRoute(c call) (int, any) {
	var spec Spec
	settings := loose(c.body["Settings"])
	delete(c.body, "Settings")
	if !c.into(&spec) || spec.Capability == "" {
		return http.StatusBadRequest, outputs{"Success": false, "Error": "Capability is required."}
	}
	spec.Settings = settings
	h.mu.Lock()
	nobody := len(h.beacons) == 0
	h.mu.Unlock()
	if nobody {
		return http.StatusServiceUnavailable, outputs{"Success": false, "Error": "No beacons registered."}
	}
	o := h.Dispatch(spec)
	if o.Err != nil {
		return http.StatusInternalServerError, outputs{"Success": false, "Error": o.Err.Error()}
	}
	return http.StatusOK, outputs{"Success": true, "WorkItemHash": o.WorkItemHash, "Outputs": o.Outputs, "Log": o.Log}
}

func (h *Hub) beaconsRoute(call) (int, any) {
	list := []BeaconRecord{}
	list = append(list, h.State().Beacons...)
	return http.StatusOK, list
}

func (h *Hub) beaconRoute(c call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.beacon(c.args[0]); b != nil {
		return http.StatusOK, b.clone()
	}
	return refusal(http.StatusNotFound, "Beacon not found.")
}

func (h *Hub) affinityRoute(call) (int, any) {
	list := []Binding{}
	list = append(list, h.State().Bindings...)
	return http.StatusOK, list
}

func (h *Hub) capabilitiesRoute(call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := []string{}
	for _, b := range h.beacons {
		for _, name := range b.Capabilities {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return http.StatusOK, outputs{"Capabilities": names, "BeaconCount": len(h.beacons), "ActionCatalog": encode(append([]catalogEntry{}, h.catalog...))}
}

func (h *Hub) persistenceRoute(call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	state := outputs{
		"State": "unassigned", "AssignedBeaconID": nil, "IDBeaconConnection": 0, "LastError": nil, "BootstrappedAt": nil, "AssignedAt": nil,
	}
	if h.bridge.proxied {
		state["State"], state["AssignedBeaconID"] = "bootstrapped", "bcn-databeacon-1"
	}
	return http.StatusOK, outputs{"Queue": state, "Manifest": state}
}

func (h *Hub) eventsRoute(c call) (int, any) {
	hash := c.args[0]
	item := inside(h.Call("QP_GetWorkItemByHash", map[string]any{"WorkItemHash": hash}))
	switch {
	case string(item["Available"]) != "true":
		return refusal(http.StatusServiceUnavailable, "No persistence backend available")
	case string(item["Success"]) != "true" || string(item["WorkItem"]) == "null":
		return refusal(http.StatusNotFound, "Work item not found.")
	}
	events := inside(h.Call("QP_GetEvents", map[string]any{"WorkItemHash": hash, "Limit": 500}))["Events"]
	orJSON(&events, "[]")
	return http.StatusOK, outputs{"WorkItemHash": hash, "Events": events}
}

func (h *Hub) queueRoute(c call) (int, any) {
	h.mu.Lock()
	live := []*WorkItem{}
	for item := range h.items() {
		live = append(live, item)
	}
	items := encode(live)
	h.mu.Unlock()
	var history any
	if c.request.URL.Query().Get("include") == "history" {
		kept := inside(h.Call("QP_ListWorkItems", map[string]any{"Filter": map[string]any{"Limit": 200, "OrderBy": "-EnqueuedAt"}}))
		history = kept["WorkItems"]
	}
	return http.StatusOK, outputs{"Summary": outputs{"At": h.stamp()}, "Items": items, "History": history}
}

func (h *Hub) manifestRoute(c call) (int, any) {
	kept := inside(h.Call("MS_GetManifest", map[string]any{"RunHash": c.args[0]}))
	if string(kept["Success"]) != "true" {
		return refusal(http.StatusNotFound, "Manifest not found.")
	}
	return http.StatusOK, kept["Manifest"]
}

func (h *Hub) manifestsRoute(call) (int, any) {
	kept := inside(h.Call("MS_ListManifests", map[string]any{"Filter": map[string]any{}}))["Manifests"]
	orJSON(&kept, "[]")
	return http.StatusOK, kept
}

// loose is an object whose members can be added to.
func loose(doc json.RawMessage) map[string]any {
	m := map[string]any{}
	for name, value := range inside(doc) {
		m[name] = value
	}
	return m
}
