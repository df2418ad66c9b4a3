package core

import (
	"net/http"
	"strconv"

	"holdfast/ports"
)

// Situation is a row of the answer table: what became of a call.
type Situation int

const (
	Done           Situation = iota // stored, filled, or read
	AlreadyPresent                  // an event or attempt that is there
	AlreadyAbsent                   // a removal of what is not there
	Ignored                         // about an exempt capability
	Expired                         // sent again after it was removed or aged out
	RefusedQuietly                  // sent again and refused: a falsy answer would stop a hub's sweep for good
	Deferred                        // durable, not decided yet
	Late                            // of a hub: later writes have set all that it would change
	Early                           // of a hub: durable, kept until its item comes
	NotFound                        // a patch of an unknown key, a read that misses
	Refused                         // Err says why
	SetAside                        // kept whole, beside the history, because the local store cannot take it
	Unavailable                     // nobody can take or answer it now; Err says why
)

// situation is how a row of the table is told. THE answer table of the design stands here and nowhere else.
type situation struct {
	available, success bool
	flag               string // the member that is true, "" for none
	status             int    // of a single call over HTTP; 0: by the error's code
	failed             bool   // counts as failed for an ingest
}

var situations = map[Situation]situation{
	Done:           {available: true, success: true, status: http.StatusOK},
	AlreadyPresent: {available: true, success: true, flag: "AlreadyPresent", status: http.StatusOK},
	AlreadyAbsent:  {available: true, success: true, flag: "AlreadyAbsent", status: http.StatusOK},
	Ignored:        {available: true, success: true, flag: "Ignored", status: http.StatusOK},
	Expired:        {available: true, success: true, flag: "Expired", status: http.StatusOK},
	RefusedQuietly: {available: true, success: true, status: http.StatusOK, failed: true},
	Deferred:       {available: true, success: true, flag: "Deferred", status: http.StatusAccepted},
	Late:           {available: true, success: true, flag: "Late", status: http.StatusOK},
	Early:          {available: true, success: true, flag: "Deferred", status: http.StatusAccepted},
	NotFound:       {available: true, flag: "NotFound", status: http.StatusNotFound},
	Refused:        {available: true, failed: true},
	SetAside:       {available: true, flag: "SetAside", status: http.StatusUnprocessableEntity, failed: true},
	Unavailable:    {failed: true},
}

// statuses maps the error vocabulary to HTTP, once.
var statuses = map[ports.Code]int{
	ports.Invalid:       http.StatusBadRequest,
	ports.TooLarge:      http.StatusRequestEntityTooLarge,
	ports.NotFound:      http.StatusNotFound,
	ports.Conflict:      http.StatusConflict,
	ports.Unauthorized:  http.StatusUnauthorized,
	ports.Unavailable:   http.StatusServiceUnavailable,
	ports.BackendGone:   http.StatusServiceUnavailable,
	ports.Unimplemented: http.StatusNotImplemented,
	ports.Canceled:      499, // the client went away; nobody reads it
	ports.Deadline:      http.StatusGatewayTimeout,
	ports.Full:          http.StatusInsufficientStorage,
	ports.Internal:      http.StatusInternalServerError,
}

// HTTPStatus is the status of an error's code.
func HTTPStatus(code ports.Code) int { return statuses[code] }

// Answer is what a caller gets, in the envelope of the bridges.
type Answer struct {
	Situation  Situation
	Backend    string // who answered a read, or who decided a write
	Seq        uint64 // of a write that was journaled
	Err        *ports.Error
	Payload    string // the payload key of the action, "" for writes
	Value      []byte // its JSON; nil gives the empty one
	List       bool   // the payload is a list
	Stale      bool   // not provably fresh
	Incomplete bool   // a key of it is set aside
	More       bool
	Cursor     string
}

// refusal is the answer to a call that was not accepted.
func refusal(err error) Answer {
	e := ports.AsError(err)
	switch e.Code {
	case ports.Full, ports.Unavailable, ports.BackendGone, ports.Deadline:
		return Answer{Situation: Unavailable, Err: e}
	}
	return Answer{Situation: Refused, Err: e}
}

// HTTPStatus is the status of a single call.
func (a Answer) HTTPStatus() int {
	s := situations[a.Situation]
	if s.status == 0 && a.Err != nil {
		return statuses[a.Err.Code]
	}
	return s.status
}

// Failed says whether an ingest counts the call as failed.
func (a Answer) Failed() bool { return situations[a.Situation].failed }

// Success is the envelope's member of that name.
func (a Answer) Success() bool { return situations[a.Situation].success }

// AppendJSON appends the envelope.
func (a Answer) AppendJSON(dst []byte) []byte {
	s := situations[a.Situation]
	dst = append(dst, `{"Available":`...)
	dst = strconv.AppendBool(dst, s.available)
	dst = append(dst, `,"Success":`...)
	dst = strconv.AppendBool(dst, s.success)
	if s.flag != "" {
		dst = append(dst, `,"`...)
		dst = append(dst, s.flag...)
		dst = append(dst, `":true`...)
	}
	if a.Err != nil {
		dst = a.appendError(dst)
	}
	if a.Seq != 0 {
		dst = append(dst, `,"Seq":`...)
		dst = strconv.AppendUint(dst, a.Seq, 10)
	}
	if a.Backend != "" {
		dst = append(dst, `,"Backend":`...)
		dst = ports.AppendQuoted(dst, a.Backend)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{a.Stale, "Stale"}, {a.Incomplete, "Incomplete"}, {a.More, "More"}} {
		if f.on {
			dst = append(append(append(dst, `,"`...), f.name...), `":true`...)
		}
	}
	if a.Cursor != "" {
		dst = append(dst, `,"Cursor":`...)
		dst = ports.AppendQuoted(dst, a.Cursor)
	}
	if a.Payload != "" {
		dst = append(append(append(dst, `,"`...), a.Payload...), `":`...)
		switch {
		case a.Value != nil:
			dst = append(dst, a.Value...)
		case a.List:
			dst = append(dst, "[]"...)
		default:
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

func (a Answer) appendError(dst []byte) []byte {
	if a.Situation == RefusedQuietly {
		dst = append(dst, `,"Refused":`...)
		dst = ports.AppendQuoted(dst, string(a.Err.Code))
	} else {
		dst = append(dst, `,"Code":`...)
		dst = ports.AppendQuoted(dst, string(a.Err.Code))
	}
	dst = append(dst, `,"Reason":`...)
	dst = ports.AppendQuoted(dst, a.Err.Error())
	if a.Err.Field != "" {
		dst = append(dst, `,"Field":`...)
		dst = ports.AppendQuoted(dst, a.Err.Field)
	}
	if a.Err.Limit != 0 {
		dst = append(dst, `,"Limit":`...)
		dst = strconv.AppendInt(dst, a.Err.Limit, 10)
		dst = append(dst, `,"Size":`...)
		dst = strconv.AppendInt(dst, a.Err.Size, 10)
	}
	return dst
}
