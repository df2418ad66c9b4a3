package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// askTimeout bounds a question to the host that has a short answer.
const askTimeout = 60 * time.Second

// client talks to a running host.
type client struct {
	base  string
	token string
	http  *http.Client
}

func (in *invocation) client() (*client, error) {
	base, own, err := in.server()
	if err != nil {
		return nil, err
	}
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	if at, err := url.Parse(base); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, exitcode.With(exitcode.Usage, fmt.Errorf("--server: %q is no address of a host; write http://127.0.0.1:8420", base))
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DisableCompression = true
	if transport.TLSClientConfig, err = trust(in.CA, own); err != nil {
		return nil, exitcode.With(exitcode.Usage, fmt.Errorf("--ca: %w", err))
	}
	return &client{base: strings.TrimRight(base, "/"), token: in.Token, http: &http.Client{Transport: transport}}, nil
}

// envelope is what every answer of a host has.
type envelope struct {
	Available, Success         bool
	NotFound                   bool
	Stale, Incomplete, More    bool
	Code                       ports.Code
	Reason, Field, Cursor      string
	Backend                    string
	AlreadyPresent             bool
	AlreadyAbsent              bool
	Ignored, Expired, Deferred bool
	SetAside, Late             bool
	Refused                    ports.Code
	Seq                        uint64
}

// fault is the error that an envelope tells, nil for none.
func (e *envelope) fault() error {
	switch {
	case e.Success || e.NotFound:
		return nil
	case e.Code == "":
		return ports.Errorf(ports.Unavailable, "", "the host cannot answer that now; see `holdfast status`")
	}
	return &ports.Error{Code: e.Code, Message: e.Reason}
}

func (c *client) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	return r, nil
}

// ask sends a question or an order and gives the answer as it came.
func (c *client) ask(ctx context.Context, method, path string, order any) (answer []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var body io.Reader
	if order != nil {
		text, err := json.Marshal(order)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(text)
	}
	r, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	got, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreachable(err)
	}
	defer got.Body.Close()
	if answer, err = io.ReadAll(got.Body); err != nil {
		return nil, c.unreachable(err)
	}
	return answer, c.refusal(got.StatusCode, answer)
}

// get asks and takes the answer apart; the answer as it came is for --json.
func (c *client) get(ctx context.Context, path string, into any) (answer []byte, err error) {
	return c.decode(into)(c.ask(ctx, http.MethodGet, path, nil))
}

// post gives an order and takes the answer apart.
func (c *client) post(ctx context.Context, path string, order, into any) error {
	_, err := c.decode(into)(c.ask(ctx, http.MethodPost, path, order))
	return err
}

func (c *client) decode(into any) func(answer []byte, err error) ([]byte, error) {
	return func(answer []byte, err error) ([]byte, error) {
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(answer, into); err != nil {
			return nil, c.foreign()
		}
		return answer, nil
	}
}

// refusal is the error that an answer tells, nil for none.
func (c *client) refusal(status int, answer []byte) error {
	var e envelope
	if err := json.Unmarshal(answer, &e); err != nil {
		return c.foreign()
	}
	if err := e.fault(); err != nil {
		if status == http.StatusUnauthorized || status == http.StatusForbidden {
			return exitcode.With(exitcode.Environment, fmt.Errorf("%w; give one with --token or HOLDFAST_TOKEN", err))
		}
		return err
	}
	return nil
}

func (c *client) foreign() error {
	return exitcode.With(exitcode.Environment, fmt.Errorf("what answers at %s is not holdfast, or not by that scheme (http, https)", c.base))
}

// errUnreachable marks that no host answered at all.
var errUnreachable = errors.New("no host answers")

func (c *client) unreachable(err error) error {
	if whole, ok := errors.AsType[*url.Error](err); ok {
		err = whole.Err
	}
	if strange, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return exitcode.With(exitcode.Environment, fmt.Errorf("the certificate of %s is not trusted (%w); name the file of its authority with --ca or HOLDFAST_CA", c.base, strange.Err))
	}
	return exitcode.With(exitcode.Environment, fmt.Errorf("%w at %s (%w); start one with `holdfast serve`, or name another with --server", errUnreachable, c.base, err))
}

// pathOf escapes a key for a path; a key of dots only would be taken for a directory.
func pathOf(before, key, after string) string {
	escaped := url.PathEscape(key)
	if strings.Trim(key, ".") == "" {
		escaped = strings.ReplaceAll(key, ".", "%2E")
	}
	return before + escaped + after
}
