package httpapi

import (
	"net/http"
	"slices"

	"holdfast/core"
	"holdfast/ports"
)

// What did not find its way: writes that the local store does not take, set aside and kept whole, and keys of which another
// backend does not have the present state, or may not have it.

// unsettledBody is the answer of the list.
type unsettledBody struct {
	Available, Success bool
	Unsettled          []core.AsideStatus     // the local store's set-aside writes
	Keys               []core.UnsettledStatus // of the other backends
	More               bool                   `json:",omitempty"` // of a backend and family there are more keys than were asked for
}

// unsettled lists them, of one backend or of all.
func (a *API) unsettled(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	name, after := p.text("backend"), p.text("after")
	families := ports.Families
	if text := p.text("family"); text != "" {
		family, err := familyOf(text)
		if err != nil {
			p.fault(err)
		}
		families = []ports.Family{family}
	}
	limit := maxLimit
	if p.values.Has("limit") {
		limit = p.limit()
	} else {
		p.asked = append(p.asked, "limit")
	}
	if after != "" && (name == "" || len(families) > 1) {
		p.fault(ports.InField(ports.Invalid, "after", "goes on behind a key of one list; name its backend and its family"))
	}
	backends, asides := a.host.Status().Backends, name == ""
	if name != "" {
		one, err := a.named("backend", name)
		if err != nil {
			p.fault(err)
		}
		backends, asides = []core.BackendStatus{one}, one.Local
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	body := unsettledBody{Available: true, Success: true, Unsettled: []core.AsideStatus{}, Keys: []core.UnsettledStatus{}}
	if asides {
		if err := a.addAsides(&body, families); err != nil {
			refuse(w, err)
			return
		}
	}
	for i := range backends {
		if backends[i].Local {
			continue
		}
		if err := a.addKeys(&body, backends[i].Name, families, after, limit); err != nil {
			refuse(w, err)
			return
		}
	}
	sendValue(w, body)
}

func (a *API) addAsides(body *unsettledBody, families []ports.Family) error {
	asides, err := a.host.Asides()
	for _, aside := range asides {
		if slices.Contains(families, aside.Family) {
			body.Unsettled = append(body.Unsettled, aside)
		}
	}
	return err
}

func (a *API) addKeys(body *unsettledBody, backend string, families []ports.Family, after string, limit int) error {
	for _, f := range families {
		keys, err := a.host.UnsettledKeys(backend, f, after, limit+1)
		if err != nil {
			return err
		}
		if len(keys) > limit {
			keys, body.More = keys[:limit], true
		}
		body.Keys = append(body.Keys, keys...)
	}
	return nil
}

// unsettledOrder is what retry and discard take. Without a Backend the local store is meant.
type unsettledOrder struct {
	Backend string
	Key     string
	All     bool // of the backend's family, in the place of a Key
}

// retry has a key's set-aside writes journaled again, or an unsettled key copied again.
func (a *API) retry(w http.ResponseWriter, r *http.Request, who caller) {
	order, follower, family, ok := a.orderForKey(w, r)
	if !ok {
		return
	}
	var n int
	var err error
	if follower {
		n, err = a.host.RetryUnsettled(order.Backend, family, order.Key)
	} else {
		n, err = a.host.RetryAside(family, order.Key)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if follower {
		a.log.Info("unsettled keys are copied again", "backend", order.Backend, "family", family, "keys", n, "actor", who.name)
	} else {
		a.log.Info("set-aside writes are tried again", "family", family, "writes", n, "actor", who.name)
	}
	respondValue(w, "Retried", n)
}

// discard drops the first set-aside write of a key, or gives an unsettled key of a backend up.
func (a *API) discard(w http.ResponseWriter, r *http.Request, who caller) {
	order, follower, family, ok := a.orderForKey(w, r)
	if !ok {
		return
	}
	if !follower {
		dropped, err := a.host.DiscardAside(family, order.Key)
		if err != nil {
			refuse(w, err)
			return
		}
		a.log.Info("a set-aside write is discarded", "family", family, "seq", dropped.Seq, "actor", who.name)
		respondValue(w, "Discarded", dropped)
		return
	}
	if order.All {
		refuse(w, ports.InField(ports.Invalid, "All", "is not for discard; give up one Key at a time"))
		return
	}
	if err := a.host.DiscardUnsettled(order.Backend, family, order.Key); err != nil {
		refuse(w, err)
		return
	}
	a.log.Info("an unsettled key is given up", "backend", order.Backend, "family", family, "actor", who.name)
	respondValue(w, "Discarded", struct {
		Backend string
		Family  ports.Family
		Key     string
	}{order.Backend, family, order.Key})
}

// orderForKey reads the order and the family in the path. It answers itself when something is wrong. Afterwards Backend is the
// name of a follower, if one is meant.
func (a *API) orderForKey(w http.ResponseWriter, r *http.Request) (order unsettledOrder, follower bool, family ports.Family, ok bool) {
	err := a.order(w, r, &order)
	if err == nil && order.Backend != "" {
		var b core.BackendStatus
		b, err = a.named("Backend", order.Backend)
		order.Backend, follower = b.Name, !b.Local
	}
	switch {
	case err != nil:
	case order.All && !follower:
		err = ports.InField(ports.Invalid, "All", "is for a backend that is not the local store; name it as Backend")
	case order.All && order.Key != "":
		err = ports.InField(ports.Invalid, "All", "and Key exclude each other")
	case !order.All && order.Key == "":
		err = ports.InField(ports.Invalid, "Key", `is missing; send {"Key": "..."}`)
	default:
		family, err = familyOf(r.PathValue("family"))
	}
	if err != nil {
		refuse(w, err)
		return order, false, "", false
	}
	return order, follower, family, true
}
