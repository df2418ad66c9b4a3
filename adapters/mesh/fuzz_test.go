package mesh

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// deaf is a socket without a connection: what would be written stays in its outbox.
func deaf(h *Hub) *socket {
	s := &socket{hub: h, who: open, more: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	h.step(func(now time.Time) {
		h.nextConn++
		s.id, s.opened = h.nextConn, now
		h.sockets[s.id] = s
	})
	return s
}

func openHub(t testing.TB) *Hub {
	t.Helper()
	h, err := New(Config{Loopback: true, Limits: Limits{Beacons: 50}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Whatever a frame holds: nothing breaks, what is answered is JSON, a work is never answered with something that is no JSON, or
// where an object was promised with something else, and no slot is lost.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		`{"Action":"BeaconRegister","Name":"worker","Capabilities":["Shell"],"MaxConcurrent":2,"Tags":{},"HostID":"n"}`,
		`{"Action":"BeaconRegister","Name":"w","Capabilities":["a",7,null,""],"MaxConcurrent":1e99,"Tags":[],"ActionSchemas":{}}`,
		`{"Action":"BeaconHeartbeat","BeaconID":"bcn-worker-1"}`,
		`{"Action":"WorkComplete","WorkItemHash":"HASH","Outputs":{"a":1},"Log":["x",7,{"y":1}]}`,
		`{"Action":"WorkComplete","WorkItemHash":"HASH","Outputs":[1],"Log":"x"}`,
		`{"Action":"WorkError","WorkItemHash":"HASH","ErrorMessage":{"a":1}}`,
		`{"Action":"WorkProgress","WorkItemHash":"HASH","ProgressData":{"Percent":3}}`,
		`{"Action":"WorkProgress","WorkItemHash":"HASH","ProgressData":7}`,
		`{"Action":"WorkResultUpload","WorkItemHash":"HASH","OutputFilename":"x","OutputSize":-1}`,
		`{"Action":"Deregister"}`, `{"Action":"QueueSubscribe","LastEventGUID":null}`, `{`, `null`, ``, `"WorkComplete""WorkItemHash":"HASH"`,
		`{"Action":"WorkComplete","WorkItemHash":"HASH"`, "{\"Action\":\"\\ud800\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		h := openHub(t)
		s := deaf(h)
		if err := s.frame([]byte(`{"Action":"BeaconRegister","Name":"worker","Capabilities":["Shell"]}`)); err != nil {
			t.Fatal(err)
		}
		w := &work{Work: shell("worker"), answered: make(chan struct{})}
		h.step(func(now time.Time) {
			if err := h.enqueue(w, now); err != nil {
				t.Fatal(err)
			}
			h.works.send(w, now)
		})
		text = bytes.ReplaceAll(text, []byte("HASH"), []byte(w.Hash))
		if err := s.frame(text); err != nil {
			s.salvage(text, err)
		}
		for _, out := range s.outbox {
			if out.text != nil && !json.Valid(out.text) {
				t.Errorf("it was told %q", out.text)
			}
		}
		h.step(func(now time.Time) { h.works.giveUp(w, ports.Errorf(ports.Deadline, "", "late"), now) })
		select {
		case <-w.answered:
		default:
			t.Fatal("the work was never answered")
		}
		if a := w.answer; a.err == nil && a.Failure == "" {
			promised := onlyObject(a.WorkAnswer)
			if !json.Valid(a.Outputs) || promised.Failure == "" && (len(promised.Outputs) == 0 || promised.Outputs[0] != '{') {
				t.Errorf("the outputs are %q, and %+v where an object was promised", a.Outputs, promised)
			}
		}
		h.step(func(now time.Time) { h.works.pass(now.Add(h.timing.Linger)) })
		for _, b := range h.works.berths {
			if len(b.held) != 0 {
				t.Errorf("%d slots are held", len(b.held))
			}
		}
	})
}

// Whatever is asked: the answer is JSON, and never the hub's own fault.
func FuzzRoutes(f *testing.F) {
	for _, row := range routes {
		f.Add(row.method, strings.ReplaceAll(row.path, "*", "wi-1"), `{"BeaconID":"x","Items":[{"WorkItemHash":"a"}],"Hashes":["a"],"Name":"n","Capabilities":["c"],"TimeoutMs":1}`)
	}
	f.Add("POST", "/Beacon/Work/%2F..%00/Complete", `{"Outputs":7}`)
	f.Add("GET", "/Manifest?hashes=,,%zz", ``)
	f.Add("POST", "/Beacon/Work/Dispatch", `{"Capability":"c","TimeoutMs":1,"Settings":{"QueueMetadata":1}}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		at, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		h := openHub(t)
		r := &http.Request{Method: method, URL: at, Host: "localhost", Header: http.Header{}, Body: http.NoBody, ContentLength: int64(len(body)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
		r.Body = body1{strings.NewReader(body)}
		if strings.Contains(path, "Dispatch") && strings.Contains(body, "apability") {
			ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
			defer cancel()
			r = r.WithContext(ctx)
		}
		w := httptest.NewRecorder()
		h.Handler().ServeHTTP(w, r)
		if w.Code >= 500 && w.Code != http.StatusServiceUnavailable && w.Code != http.StatusNotImplemented && !strings.Contains(path, "Dispatch") {
			t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
		}
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s: %q is no JSON", method, path, w.Body)
		}
	})
}

type body1 struct{ *strings.Reader }

func (body1) Close() error { return nil }

// Whatever registers: what is kept is bounded and can be shown again.
func FuzzRegistrations(f *testing.F) {
	f.Add([]byte(`{"Name":"worker","Capabilities":["Shell"],"MaxConcurrent":2,"Tags":{"a":1},"Contexts":{},"BindAddresses":[],"HostID":"n","SharedMounts":[],"ActionSchemas":[{"Capability":"Shell","Action":"x","SettingsSchema":[]}]}`))
	f.Add([]byte("{\"Name\":\"\\ud800 \\u0000\",\"Capabilities\":[]}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := parseRegistration(text)
		if err != nil {
			return
		}
		h := openHub(t)
		var record []byte
		h.step(func(now time.Time) {
			err = h.join(r, 0, "", now, func(b *beacon) { record = h.beaconRecord(b) })
		})
		if err != nil || !json.Valid(record) {
			t.Errorf("%v, the record is %q", err, record)
		}
		for _, e := range catalog([]beaconSchemas{{"x", true, r.opaque["ActionSchemas"]}}) {
			if !json.Valid(e.text(true)) {
				t.Errorf("the catalog has %q", e.text(true))
			}
		}
	})
}
