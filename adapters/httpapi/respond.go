package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"holdfast/core"
	"holdfast/ports"
)

// refusal is an error that says its own HTTP status; all others get that of their code.
type refusal struct {
	status int
	err    *ports.Error
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse answers a request that became no call.
func refuse(w http.ResponseWriter, err error) {
	answer := core.Refusal(err)
	var own *refusal
	if !errors.As(err, &own) {
		respond(w, answer)
		return
	}
	if own.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="holdfast"`)
	}
	respondAs(w, own.status, answer)
}

// respond answers with the envelope and the status that the table gives it.
func respond(w http.ResponseWriter, answer core.Answer) { respondAs(w, answer.HTTPStatus(), answer) }

func respondAs(w http.ResponseWriter, status int, answer core.Answer) {
	if status == 0 {
		status = http.StatusServiceUnavailable // nobody can answer, and nobody says why
	}
	pooled := buffers.Get().(*[]byte)
	body := append(answer.AppendJSON((*pooled)[:0]), '\n')
	send(w, status, body)
	if cap(body) <= maxPooled {
		*pooled = body
	}
	buffers.Put(pooled)
}

// respondValue answers with a value under a payload key.
func respondValue(w http.ResponseWriter, payload string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		refuse(w, ports.Wrap(ports.Internal, "answer", err))
		return
	}
	respond(w, core.Answer{Payload: payload, Value: text})
}

// sendValue answers with a value that is the whole envelope.
func sendValue(w http.ResponseWriter, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		refuse(w, ports.Wrap(ports.Internal, "answer", err))
		return
	}
	send(w, http.StatusOK, append(text, '\n'))
}

func send(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a peer that went away is not told anything
}

// maxPooled is the largest buffer that is kept for the next answer.
const maxPooled = 64 << 10

var buffers = sync.Pool{New: func() any { b := make([]byte, 0, 512); return &b }}

// recorder notes what was answered, for the metrics and the access log.
type recorder struct {
	http.ResponseWriter
	status int
	bytes  int64
}

func (w *recorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *recorder) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *recorder) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	n, err := w.ResponseWriter.Write(p)
	w.bytes += int64(n)
	return n, err
}
