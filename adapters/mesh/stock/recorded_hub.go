package stock

// The hub's side of a transcript, played to a beacon.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coder/websocket"
)

// RecordedHub answers a beacon as the recorded hub did, once through the transcript, and compares what the beacon says.
type RecordedHub struct {
	shape Shape
	life  context.Context
	end   context.CancelFunc

	mu      sync.Mutex
	steps   []*Step // not played yet
	found   []string
	changed chan struct{}
}

// NewRecordedHub plays a transcript. Close it.
func NewRecordedHub(steps []Step, shape Shape) *RecordedHub {
	h := &RecordedHub{shape: shape, changed: make(chan struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	for i := range steps {
		h.steps = append(h.steps, &steps[i])
	}
	return h
}

// Close ends what goes on.
func (h *RecordedHub) Close() { h.end() }

// Await returns the differences when everything was played but for polls that found nothing.
func (h *RecordedHub) Await(ctx context.Context) ([]string, error) {
	for {
		h.mu.Lock()
		left := slices.DeleteFunc(slices.Clone(h.steps), func(s *Step) bool {
			return s.Kind == StepClosed || strings.HasSuffix(s.Path, "/Poll") && s.Work() == nil
		})
		found, changed := slices.Clone(h.found), h.changed
		h.mu.Unlock()
		if len(left) == 0 {
			return found, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return found, fmt.Errorf("%d steps were not played, the first is line %d, %s: %w", len(left), left[0].Line, left[0].title(), ctx.Err())
		}
	}
}

// next takes the first step that fits.
func (h *RecordedHub) next(fits func(s *Step) bool) *Step {
	h.mu.Lock()
	defer h.mu.Unlock()
	i := slices.IndexFunc(h.steps, fits)
	if i < 0 {
		return nil
	}
	s := h.steps[i]
	h.steps = slices.Delete(h.steps, i, i+1)
	return s
}

func (h *RecordedHub) compare(s *Step, recorded, got json.RawMessage) {
	for _, d := range h.shape.Compare(recorded, got) {
		h.complain(fmt.Sprintf("line %d, %s: %s", s.Line, s.title(), d))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	close(h.changed)
	h.changed = make(chan struct{})
}

func (h *RecordedHub) complain(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.found = append(h.found, what)
}

// ServeHTTP answers a request with the first recorded answer to its like.
func (h *RecordedHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.serveSocket(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s := h.next(func(s *Step) bool { return s.Kind == StepHTTP && s.Method == r.Method && s.Path == r.URL.Path })
	if s == nil {
		h.beyond(w, r)
		return
	}
	h.framing(s, r)
	answer(w, s.Status, s.Response)
	h.compare(s, s.Request, body)
}

// beyond answers what goes on by the clock, more often than it was recorded.
func (h *RecordedHub) beyond(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/Poll") || strings.HasSuffix(r.URL.Path, "/Heartbeat") {
		answer(w, http.StatusOK, outputs{"WorkItem": nil})
		return
	}
	h.complain("nobody recorded " + r.Method + " " + r.URL.Path)
	answer(w, http.StatusNotFound, outputs{"Error": "not recorded"})
}

// framing compares how the body came.
func (h *RecordedHub) framing(s *Step, r *http.Request) {
	recorded, here := s.RequestHeader["transfer-encoding"] == "chunked", slices.Contains(r.TransferEncoding, "chunked")
	if recorded != here {
		h.complain(fmt.Sprintf("line %d, %s: recorded chunked %t, here %t", s.Line, s.title(), recorded, here))
	}
	if kind := r.Header.Get("Content-Type"); kind != s.RequestHeader["content-type"] {
		h.complain(fmt.Sprintf("line %d, %s: recorded content type %q, here %q", s.Line, s.title(), s.RequestHeader["content-type"], kind))
	}
}

func (h *RecordedHub) serveSocket(w http.ResponseWriter, r *http.Request) {
	opening := h.next(func(s *Step) bool { return s.Kind == StepOpen })
	if opening == nil || opening.Path != r.URL.Path {
		h.complain("nobody recorded a socket at " + r.URL.Path)
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	conn.SetReadLimit(frameLimit)
	defer func() { _ = conn.CloseNow() }()
	heard := map[string][]byte{} // what came before its turn
	for {
		s := h.next(func(s *Step) bool { return s.Kind == StepFrame })
		if s == nil {
			_, _, _ = conn.Read(h.life) // until the beacon has enough
			return
		}
		if !s.FromBeacon() {
			if conn.Write(h.life, websocket.MessageText, s.Frame) != nil {
				return
			}
			h.compare(s, nil, nil)
			continue
		}
		for heard[turn(s.Frame)] == nil {
			_, doc, err := conn.Read(h.life)
			if err != nil {
				return
			}
			heard[turn(doc)] = doc
		}
		h.compare(s, s.Frame, heard[turn(s.Frame)])
		delete(heard, turn(s.Frame))
	}
}

// turn tells the frames of a beacon apart: reports by their work, others by what they are.
func turn(doc []byte) string {
	m := inside(doc)
	return text(m["Action"]) + " " + text(m["WorkItemHash"])
}
