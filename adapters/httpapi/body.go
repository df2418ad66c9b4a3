package httpapi

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"holdfast/ports"
)

// Bodies come in by size: what is small is simply read; what is large first takes its part of the budget, which bounds
// the large records in work at a time, all callers together.
const (
	small      = 64 << 10
	medium     = 1 << 20
	slowest    = 256 << 10 // bytes a second, for a peer that holds a part of the budget
	budgetWait = 30 * time.Second
)

// errBusy is the answer when the budget was not to be had.
var errBusy = ports.Errorf(ports.Unavailable, "", "too many large records are in work; send it again in a moment")

// inflate gives the body as it was before its Content-Encoding. done gives pooled parts back.
func inflate(r *http.Request) (body io.Reader, plain bool, done func(), err error) {
	switch encoding := r.Header.Get("Content-Encoding"); strings.ToLower(encoding) {
	case "", "identity":
		return r.Body, true, func() {}, nil
	case "gzip", "x-gzip":
		zipped := unzippers.Get().(*gzip.Reader)
		if err := zipped.Reset(r.Body); err != nil {
			unzippers.Put(zipped)
			return nil, false, nil, broken(err)
		}
		return zipped, false, func() { unzippers.Put(zipped) }, nil
	default:
		return nil, false, nil, &refusal{http.StatusUnsupportedMediaType, ports.InField(ports.Invalid, "Content-Encoding",
			"%q is not understood; send the body as it is or with gzip", printable(encoding))}
	}
}

var unzippers = sync.Pool{New: func() any { return new(gzip.Reader) }}

// broken is the error of a body that ended in the middle or cannot be unpacked.
func broken(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return &refusal{http.StatusRequestTimeout, ports.InField(ports.Invalid, "body", "came too slowly or stopped in the middle")}
	}
	return ports.InField(ports.Invalid, "body", "breaks off or is damaged: %v", err)
}

// take waits for a part of the budget.
func (a *API) take(ctx context.Context, bytes int64) error {
	if a.budget.TryAcquire(bytes) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, budgetWait)
	defer cancel()
	if a.budget.Acquire(ctx, bytes) != nil {
		return errBusy
	}
	return nil
}

// wholeBody reads a body of at most limit bytes. The bytes belong to the caller; held is its part of the budget, which the
// caller gives back.
func (a *API) wholeBody(w http.ResponseWriter, r *http.Request, limit int64) (body []byte, held int64, err error) {
	if r.ContentLength > limit {
		return nil, 0, ports.OverLimit("body", "bytes", limit, r.ContentLength)
	}
	in, plain, done, err := inflate(r)
	if err != nil {
		return nil, 0, err
	}
	defer done()
	deadlines := http.NewResponseController(w)
	_ = deadlines.SetReadDeadline(time.Now().Add(writeTimeout))
	if plain && r.ContentLength >= 0 {
		if r.ContentLength > small {
			held = r.ContentLength
			if err := a.take(r.Context(), held); err != nil {
				return nil, 0, err
			}
			_ = deadlines.SetReadDeadline(time.Now().Add(patience(held)))
		}
		body = make([]byte, r.ContentLength)
		if _, err = io.ReadFull(in, body); err != nil {
			err = broken(err)
		}
	} else {
		body, held, err = a.grow(r.Context(), deadlines, in, limit)
	}
	if err != nil {
		a.budget.Release(held)
		return nil, 0, err
	}
	_ = deadlines.SetReadDeadline(time.Time{})
	return body, held, nil
}

// patience is how long a peer may take to send so many bytes.
func patience(bytes int64) time.Duration {
	return writeTimeout + time.Duration(bytes/slowest)*time.Second
}

// grow reads a body whose length nobody told.
func (a *API) grow(ctx context.Context, deadlines *http.ResponseController, in io.Reader, limit int64) (body []byte, held int64, err error) {
	body, err = io.ReadAll(io.LimitReader(in, min(small, limit)))
	if err == nil && int64(len(body)) == small {
		if err := a.take(ctx, limit); err != nil {
			return nil, 0, err
		}
		held = limit
		_ = deadlines.SetReadDeadline(time.Now().Add(patience(limit)))
		body, err = appendAll(body, io.LimitReader(in, limit-int64(len(body))))
	}
	if err != nil {
		a.budget.Release(held)
		return nil, 0, broken(err)
	}
	if int64(len(body)) == limit {
		if n, _ := io.CopyN(io.Discard, in, 1); n > 0 {
			a.budget.Release(held)
			return nil, 0, ports.OverLimit("body", "bytes", limit, limit+1)
		}
	}
	if rest := held - int64(len(body)); rest > 0 {
		a.budget.Release(rest)
		held -= rest
	}
	return body, held, nil
}

func appendAll(body []byte, in io.Reader) ([]byte, error) {
	for {
		if len(body) == cap(body) {
			body = append(body, 0)[:len(body)]
		}
		n, err := in.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			return body, nil
		}
		if err != nil {
			return body, err
		}
	}
}
