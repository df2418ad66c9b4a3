package httpapi

import (
	"net/http"

	"holdfast/core"
	"holdfast/ports"
)

// stopping is why a host that was told to stop is not ready.
const stopping = "the host is stopping"

// live says that the process answers, whatever else is wrong.
func (a *API) live(w http.ResponseWriter, _ *http.Request, _ caller) { respond(w, core.Answer{}) }

// ready says whether writes are accepted and reads answered.
func (a *API) ready(w http.ResponseWriter, _ *http.Request, _ caller) {
	err := a.host.Ready()
	if a.draining.Err() != nil {
		err = ports.Errorf(ports.Unavailable, "", stopping)
	}
	if err != nil {
		refuse(w, &refusal{http.StatusServiceUnavailable, ports.AsError(err)})
		return
	}
	respond(w, core.Answer{})
}
