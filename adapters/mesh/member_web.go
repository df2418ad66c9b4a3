package mesh

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"holdfast/ports"
)

// maxAsked bounds the answer of a hub's route.
const maxAsked = 32 << 20

// web is the hub's HTTP side: a login whose cookie is kept, and routes.
type web struct {
	base           string
	user, password string
	client         *http.Client
	timing         MemberTiming

	mu      sync.Mutex
	cookie  string
	refused string // why the last login failed; "" when it did not, or there is none to try
}

func newWeb(base, user, password string, roots *x509.CertPool, timing MemberTiming) *web {
	transport, _ := http.DefaultTransport.(*http.Transport)
	own := transport.Clone()
	own.MaxIdleConnsPerHost, own.IdleConnTimeout = 8, 30*time.Second
	own.TLSClientConfig, own.ForceAttemptHTTP2 = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, false // a socket is no matter of HTTP/2
	return &web{base: base, user: user, password: password, timing: timing, client: &http.Client{
		Transport:     own,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *web) close() { w.client.CloseIdleConnections() }

func (w *web) cookieNow() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cookie
}

// login gets a cookie, if there is somebody to log in. A hub's no is not the end: an open hub needs no cookie, and a secret may
// do as well. It fails when the hub does not answer at all.
func (w *web) login(ctx context.Context) error {
	if w.user == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.timing.Connect)
	defer cancel()
	body := newObject(200).str("UserName", w.user).str("Password", w.password).done()
	status, header, text, err := w.call(ctx, http.MethodPost, "/1.0/Authenticate", body, "")
	if err != nil {
		return err
	}
	var answer struct {
		LoggedIn bool
		Error    string
	}
	refused := ""
	if json.Unmarshal(text, &answer) != nil || status != http.StatusOK {
		refused = fmt.Sprintf("it answers a login with %d", status)
	} else if !answer.LoggedIn {
		refused = reasonOr(answer.Error, "it does not know the user")
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refused = refused; refused != "" {
		cookie = ""
	}
	w.cookie = cookie
	return nil
}

// ask reads a route. status is 0 only with an error.
func (w *web) ask(ctx context.Context, path string, into any) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.timing.Ask)
	defer cancel()
	status, _, text, err := w.call(ctx, http.MethodGet, path, nil, w.cookieNow())
	if err != nil || status != http.StatusOK {
		return status, err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return status, ports.Errorf(ports.Invalid, "", "the hub's answer to GET %s is not what a hub says", path)
	}
	return status, nil
}

// complete reports a work. A hub that knows no such work any more has been told already, or will push it again.
func (w *web) complete(hash string, body []byte) error {
	limit := w.timing.Send + time.Duration(len(body))*time.Second/slowestOut
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	status, _, _, err := w.call(ctx, http.MethodPost, "/Beacon/Work/"+url.PathEscape(hash)+"/Complete", body, w.cookieNow())
	switch {
	case err != nil:
		return err
	case status == http.StatusOK, status == http.StatusBadRequest:
		return nil
	}
	return fmt.Errorf("the hub answers a report with %d", status)
}

func (w *web) call(ctx context.Context, method, path string, body []byte, cookie string) (status int, header http.Header, text []byte, err error) {
	request, err := http.NewRequestWithContext(ctx, method, w.base+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if cookie != "" {
		request.Header.Set("Cookie", cookie)
	}
	response, err := w.client.Do(request)
	if err != nil {
		return 0, nil, nil, w.plain(err)
	}
	defer response.Body.Close()
	text, err = io.ReadAll(io.LimitReader(response.Body, maxAsked+1))
	switch {
	case err != nil:
		return 0, nil, nil, w.plain(err)
	case len(text) > maxAsked:
		return 0, nil, nil, fmt.Errorf("the hub's answer to %s %s is larger than %d MiB", method, path, maxAsked>>20)
	case response.StatusCode >= 300 && response.StatusCode < 400:
		return 0, nil, nil, fmt.Errorf("the hub sends callers on to %q; join there instead", printable(response.Header.Get("Location")))
	}
	return response.StatusCode, response.Header, text, nil
}

// plain is an error of a connection in the words of people.
func (*web) plain(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("the hub does not answer in time")
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the address, which stands beside it
	}
	return err
}
