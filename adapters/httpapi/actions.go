package httpapi

import (
	"context"
	"mime"
	"net/http"

	"holdfast/core"
	"holdfast/ports"
)

// Headers of POST /v1/actions.
const (
	StreamHeader      = "Holdfast-Stream" // the name of the file that the lines come from; the same file again doubles nothing
	IdempotencyHeader = "Idempotency-Key" // the same request again doubles nothing
)

const (
	typeJSON   = "application/json"
	typeNDJSON = "application/x-ndjson"
)

// maxName bounds the names that callers give in headers.
const maxName = 256

// actions takes one action or a stream of them.
func (a *API) actions(w http.ResponseWriter, r *http.Request, who caller) {
	source, err := sourceOf(r, who)
	if err != nil {
		refuse(w, err)
		return
	}
	media := r.Header.Get("Content-Type")
	if media != typeJSON && media != typeNDJSON { // else there is nothing to parse
		media, _, _ = mime.ParseMediaType(media)
	}
	switch media {
	case typeJSON:
		a.single(w, r, who, source)
	case typeNDJSON:
		a.stream(w, r, who, source)
	default:
		w.Header().Set("Accept", typeJSON+", "+typeNDJSON)
		refuse(w, &refusal{http.StatusUnsupportedMediaType, ports.InField(ports.Invalid, "Content-Type",
			"must be %s for one action or %s for many, one a line", typeJSON, typeNDJSON)})
	}
}

func sourceOf(r *http.Request, who caller) (core.Source, error) {
	source := core.Source{Actor: who.name, Origin: ports.OriginHTTP, Idempotency: r.Header.Get(IdempotencyHeader), Line: 1}
	stream := r.Header.Get(StreamHeader)
	for header, value := range map[string]string{IdempotencyHeader: source.Idempotency, StreamHeader: stream} {
		if len(value) > maxName {
			return source, ports.OverLimit(header, "bytes", maxName, int64(len(value)))
		}
	}
	if stream != "" {
		source.Stream = core.NewStream(stream)
	}
	return source, nil
}

// single takes one action.
func (a *API) single(w http.ResponseWriter, r *http.Request, who caller, source core.Source) {
	body, held, err := a.wholeBody(w, r, ports.MaxLineBytes)
	if err != nil {
		refuse(w, err)
		return
	}
	defer a.budget.Release(held)
	call, err := core.ParseCall(body)
	if err == nil {
		err = mayCall(who, call.Action)
	}
	if err != nil {
		refuse(w, err)
		return
	}
	call.Source = source
	respond(w, a.host.Begin(call).Wait(patient(r)))
}

// mayCall says whether a caller may send an action.
func mayCall(who caller, action ports.Action) error {
	if action.IsWrite() && who.role < RoleWrite {
		return forbidden(who, RoleWrite)
	}
	return nil
}

// patient is the context in which an answer is waited for. A peer that closes its half behind the request has not gone away,
// though net/http takes it so; every wait has a limit of its own.
func patient(r *http.Request) context.Context { return context.WithoutCancel(r.Context()) }
