package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

const (
	maxOrder   = 64 << 10         // the body of an operator's order
	surveyTime = 2 * time.Second  // for ?counts=true
	pruneTime  = 10 * time.Second // of one call; the caller goes on while More
)

// statusBody is a core.Status in the envelope.
type statusBody struct {
	Available, Success bool
	core.Status
	Survey      *ports.Survey `json:",omitempty"`
	SurveyFault string        `json:",omitempty"` // why there is no Survey
	Hub         any           `json:",omitempty"` // that beacons connect to
	Joined      any           `json:",omitempty"` // the membership of somebody else's hub
}

// status tells how things stand, with ?counts=true also how much there is.
func (a *API) status(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	counts := p.flag("counts")
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	body := statusBody{Available: true, Success: true, Status: a.host.Status()}
	if a.draining.Err() != nil {
		body.Ready, body.Detail = false, stopping
	}
	if a.hub != nil {
		body.Hub = a.hub()
	}
	if a.joined != nil {
		membership, notice := a.joined()
		if body.Joined = membership; notice != "" {
			body.Notices = append(body.Notices, notice)
		}
	}
	if counts {
		ctx, cancel := context.WithTimeout(r.Context(), surveyTime)
		defer cancel()
		survey, err := a.host.Survey(ctx)
		if err != nil {
			body.SurveyFault = err.Error()
		} else {
			body.Survey = &survey
		}
	}
	sendValue(w, body)
}

// write tells what became of a write.
func (a *API) write(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	family, err := familyOf(r.PathValue("family"))
	if err != nil {
		p.fault(err)
	}
	seq, err := strconv.ParseUint(r.PathValue("seq"), 10, 64)
	if err != nil || seq == 0 {
		p.fault(ports.InField(ports.Invalid, "seq", "%q is not a Seq, a whole number from 1", printable(r.PathValue("seq"))))
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	respondValue(w, "Write", a.host.Write(family, seq))
}

// acceptLocal lets the host go on with a local store that holds other history.
func (a *API) acceptLocal(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct{ Adopt bool }
	err := a.order(w, r, &order)
	if err == nil {
		err = a.host.AcceptLocal(order.Adopt)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	a.log.Info("the local store is accepted as it is", "adopt", order.Adopt, "actor", who.name)
	respond(w, core.Answer{})
}

// prune removes finished history that is older than asked. One call takes a bounded time; More says that there is more.
func (a *API) prune(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct{ OlderThan string }
	if err := a.order(w, r, &order); err != nil {
		refuse(w, err)
		return
	}
	age, err := time.ParseDuration(order.OlderThan)
	if err != nil || age <= 0 {
		refuse(w, ports.InField(ports.Invalid, "OlderThan", `%q is no duration above zero; send {"OlderThan": "720h"}`, printable(order.OlderThan)))
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), a.pruneTime)
	defer cancel()
	pruned, err := a.host.Prune(ctx, time.Now().Add(-age))
	if err != nil && ctx.Err() != nil && r.Context().Err() == nil {
		pruned.More, err = true, nil // this call's time is over; what it removed stays removed
	}
	if err != nil {
		refuse(w, err)
		return
	}
	a.log.Info("pruned", "older_than", age, "items", pruned.Items, "manifests", pruned.Manifests, "more", pruned.More, "actor", who.name)
	respondValue(w, "Pruned", pruned)
}

// order reads the JSON body of an operator's order. An empty body orders the usual.
func (a *API) order(w http.ResponseWriter, r *http.Request, into any) error {
	if err := paramsOf(r).done(); err != nil {
		return err
	}
	body, held, err := a.wholeBody(w, r, maxOrder)
	if err != nil {
		return err
	}
	defer a.budget.Release(held)
	if len(body) == 0 {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return ports.InField(ports.Invalid, "body", "is not what this order takes: %v", err)
	}
	return nil
}
