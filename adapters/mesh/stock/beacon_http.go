package stock

// How a beacon talks HTTP: bodies without a length but for the login, a cookie that is sent back as it came, every answer
// JSON, 401 means authenticate and register again.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

func (b *Beacon) authenticate() error {
	body, err := json.Marshal(map[string]any{"UserName": b.config.UserName, "Password": b.config.Password})
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(b.life, http.MethodPost, b.address("http", "/1.0/Authenticate"), bytes.NewReader(body))
	if err != nil {
		return err
	}
	status, header, answer, err := b.carry(req)
	if err != nil {
		return err
	}
	if status >= http.StatusBadRequest {
		return fmt.Errorf("authentication failed with HTTP %d", status)
	}
	if cookies := header.Values("Set-Cookie"); len(cookies) > 0 {
		cookie, _, _ := strings.Cut(cookies[0], ";")
		b.change(func() { b.cookie = strings.TrimSpace(cookie) })
	}
	if len(answer) > 0 && !json.Valid(answer) {
		return fmt.Errorf("no JSON in the answer to the login: %.200s", answer)
	}
	return nil
}

// request sends body, if there is one, and gives the answer.
func (b *Beacon) request(ctx context.Context, method, path string, body any) (json.RawMessage, error) {
	if !b.awake(ctx) {
		return nil, context.Canceled
	}
	var reader io.Reader
	if body != nil {
		doc, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		reader = bytes.NewReader(doc)
	}
	req, err := http.NewRequestWithContext(ctx, method, b.address("http", path), reader)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.ContentLength = -1
	}
	b.mu.Lock()
	if b.cookie != "" {
		req.Header.Set("Cookie", b.cookie)
	}
	b.mu.Unlock()
	status, _, answer, err := b.carry(req)
	if err != nil || !b.awake(ctx) {
		return nil, errors.Join(err, ctx.Err())
	}
	if status == http.StatusUnauthorized {
		b.spawn(b.reauthenticate)
		return nil, errors.New("unauthorized, reconnecting")
	}
	if !json.Valid(answer) {
		return nil, fmt.Errorf("no JSON in the answer to %s %s: %.200s", method, path, answer)
	}
	if status >= http.StatusBadRequest {
		var told struct{ Error string }
		if json.Unmarshal(answer, &told) != nil || told.Error == "" {
			told.Error = fmt.Sprintf("HTTP %d", status)
		}
		return nil, errors.New(told.Error)
	}
	return answer, nil
}

func (b *Beacon) carry(req *http.Request) (status int, header http.Header, answer []byte, err error) {
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "") // none
	res, err := b.http.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer res.Body.Close()
	answer, err = io.ReadAll(res.Body)
	return res.StatusCode, res.Header, answer, err
}

// address puts a path on the host of the server; the scheme is that of a request or of a socket.
func (b *Beacon) address(scheme, path string) string {
	server, err := url.Parse(b.config.ServerURL)
	if err != nil {
		return b.config.ServerURL
	}
	if server.Scheme == "https" {
		scheme += "s"
	}
	return scheme + "://" + server.Host + path
}

// reauthenticate is what a 401 leads to. While no registration was answered before, it ends with a beacon that is registered
// and yet never polls.
func (b *Beacon) reauthenticate() {
	b.mu.Lock()
	if b.authenticating {
		b.mu.Unlock()
		return
	}
	b.authenticating, b.cookie = true, ""
	b.mu.Unlock()
	b.endPolling()
	b.endBeating()
	err := b.authenticate()
	if err == nil {
		err = b.register()
	}
	b.change(func() { b.authenticating = false })
	if err != nil {
		b.config.Log("not registered again: " + err.Error())
		b.spawn(func() {
			if pause(b.life, b.config.Clock, reauthorize) {
				b.reauthenticate()
			}
		})
		return
	}
	b.poll()
}
