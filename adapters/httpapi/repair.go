package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"holdfast/core"
	"holdfast/ports"
)

// What an operator can do about a backend that is not equal to the local store.

// backends tells how each backend is.
func (a *API) backends(w http.ResponseWriter, r *http.Request, _ caller) {
	if err := paramsOf(r).done(); err != nil {
		refuse(w, err)
		return
	}
	respondValue(w, "Backends", a.host.Status().Backends)
}

// named gives the configured backend that a caller means. "local" always means the local store.
func (a *API) named(field, name string) (core.BackendStatus, error) {
	backends := a.host.Status().Backends
	for _, alias := range []bool{false, true} {
		i := slices.IndexFunc(backends, func(b core.BackendStatus) bool { return b.Name == name || alias && b.Local && name == "local" })
		if i >= 0 {
			return backends[i], nil
		}
	}
	if name == "" {
		return core.BackendStatus{}, ports.InField(ports.Invalid, field, "is missing; it is the name of a backend: %s", namesOf(backends))
	}
	return core.BackendStatus{}, ports.InField(ports.NotFound, field, "no backend is called %q; there is %s", printable(name), namesOf(backends))
}

func namesOf(backends []core.BackendStatus) string {
	names := make([]string, len(backends))
	for i, b := range backends {
		names[i] = b.Name
	}
	return strings.Join(names, ", ")
}

// unconfirmed only has the records counted.
const unconfirmed = -1

// resync copies everything again; with Exact it removes what only the backend has, when the caller knows how much that is.
func (a *API) resync(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct {
		Exact   bool
		Confirm *int64
	}
	b, err := a.named("name", r.PathValue("name"))
	if err == nil {
		err = a.order(w, r, &order)
	}
	if err == nil && order.Confirm != nil && (!order.Exact || *order.Confirm < 0) {
		err = ports.InField(ports.Invalid, "Confirm", "goes with Exact, and is the count of records that a call without it told")
	}
	if err == nil && !order.Exact {
		err = a.host.Resync(b.Name)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	if !order.Exact {
		a.log.Info("a backend is copied to again from zero", "backend", b.Name, "actor", who.name)
		respond(w, core.Answer{})
		return
	}
	confirm := int64(unconfirmed)
	if order.Confirm != nil {
		confirm = *order.Confirm
	}
	done, err := last(a, w, r, "Exactness", func(ctx context.Context, tell func(core.Progress)) (core.Exactness, error) {
		return a.host.ResyncExact(ctx, b.Name, confirm, tell)
	})
	a.note(err, "what only a backend has is removed", "backend", b.Name, "only_there", done.OnlyThere, "removed", done.Removed, "actor", who.name)
}

// adopt takes what a backend has into the local store.
func (a *API) adopt(w http.ResponseWriter, r *http.Request, who caller) {
	b, err := a.named("name", r.PathValue("name"))
	if err == nil {
		err = a.order(w, r, &struct{}{})
	}
	if err != nil {
		refuse(w, err)
		return
	}
	done, err := last(a, w, r, "Adopted", func(ctx context.Context, tell func(core.Progress)) (core.Adopted, error) {
		return a.host.Adopt(ctx, b.Name, tell)
	})
	a.note(err, "a backend's records are taken in", "backend", b.Name, "looked", done.Looked, "taken", done.Taken, "refused", done.Refused, "actor", who.name)
}

// verify compares two backends. It changes neither.
func (a *API) verify(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct{ A, B string }
	first, second, ok := a.pair(w, r, &order, "A", &order.A, "B", &order.B)
	if !ok {
		return
	}
	done, err := last(a, w, r, "Verification", func(ctx context.Context, tell func(core.Progress)) (core.Verification, error) {
		return a.host.Verify(ctx, first, second, tell)
	})
	a.note(err, "two backends are compared", "a", first, "b", second, "equal", err == nil && done.Equal(), "actor", who.name)
}

// copy brings what one backend has to another.
func (a *API) copy(w http.ResponseWriter, r *http.Request, who caller) {
	var order struct{ From, To string }
	from, to, ok := a.pair(w, r, &order, "From", &order.From, "To", &order.To)
	if !ok {
		return
	}
	done, err := last(a, w, r, "Copied", func(ctx context.Context, tell func(core.Progress)) (core.Copied, error) {
		return a.host.Copy(ctx, from, to, tell)
	})
	a.note(err, "a backend is copied to another", "from", from, "to", to, "looked", done.Looked, "put", done.Put, "unsettled", done.Unsettled, "actor", who.name)
}

// pair reads an order that names two backends. It answers itself when something is wrong.
func (a *API) pair(w http.ResponseWriter, r *http.Request, order any, fieldA string, nameA *string, fieldB string, nameB *string) (first, second string, ok bool) {
	var one, two core.BackendStatus
	err := a.order(w, r, order)
	if err == nil {
		one, err = a.named(fieldA, *nameA)
	}
	if err == nil {
		two, err = a.named(fieldB, *nameB)
	}
	if err == nil && one.Name == two.Name {
		err = ports.InField(ports.Invalid, fieldB, "is the same backend as %s", fieldA)
	}
	if err != nil {
		refuse(w, err)
		return "", "", false
	}
	return one.Name, two.Name, true
}

// note logs what became of an order that took its time.
func (a *API) note(err error, what string, args ...any) {
	if err != nil {
		a.log.Warn(what+": not to the end", append(args, "error", err)...)
		return
	}
	a.log.Info(what, args...)
}
