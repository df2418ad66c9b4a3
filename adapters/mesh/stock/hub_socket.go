package stock

// The sockets of a hub: frames in, in their order, and frames out, as many as there are.

import (
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"github.com/coder/websocket"
)

// hubSocket is one socket. Its writer takes frames from a queue without a bound, as the stock software buffers them.
type hubSocket struct {
	conn    *websocket.Conn
	session *string

	// under the lock of the hub
	beaconID string
	upload   string // the work whose file is the next binary frame

	mu    sync.Mutex
	out   [][]byte
	wake  chan struct{}
	done  chan struct{} // closed when ended
	ended bool
}

func (s *hubSocket) send(frame any) bool { return s.sendRaw(encode(frame)) }

func (s *hubSocket) sendRaw(doc []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	s.out = append(s.out, doc)
	select {
	case s.wake <- struct{}{}:
	default:
	}
	return true
}

// end breaks the connection.
func (s *hubSocket) end() {
	s.mu.Lock()
	if !s.ended {
		s.ended = true
		close(s.done)
	}
	s.mu.Unlock()
	_ = s.conn.CloseNow()
}

// writeTo sends what is queued, until the socket ends; a nil frame is the goodbye of a refusal.
func (h *Hub) writeTo(s *hubSocket) {
	for {
		select {
		case <-s.wake:
		case <-s.done:
			return
		}
		for {
			s.mu.Lock()
			if s.ended {
				s.mu.Unlock()
				return
			}
			if len(s.out) == 0 {
				s.mu.Unlock()
				break
			}
			doc := s.out[0]
			s.out = s.out[1:]
			s.mu.Unlock()
			if doc == nil {
				_ = s.conn.Close(4403, "Beacon admission denied")
				return
			}
			if s.conn.Write(h.life, websocket.MessageText, doc) != nil {
				return
			}
		}
	}
}

func (h *Hub) serveSocket(w http.ResponseWriter, r *http.Request) {
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		return
	}
	conn.SetReadLimit(frameLimit)
	s := &hubSocket{conn: conn, wake: make(chan struct{}, 1), done: make(chan struct{})}
	defer s.end()
	h.mu.Lock()
	if user, session := h.session(r); user != "" {
		s.session = &session
	}
	if h.closed {
		h.mu.Unlock()
		return
	}
	h.all.Add(1) // the goroutine is the server's
	defer h.all.Done()
	h.spawn(func() { h.writeTo(s) })
	h.mu.Unlock()
	for {
		kind, doc, err := conn.Read(h.life)
		if err != nil {
			break
		}
		h.hear(s, kind == websocket.MessageBinary, doc)
	}
	s.end()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.gone(s)
}

// gone deletes the beacon that registered over the socket, whoever serves it now.
func (h *Hub) gone(s *hubSocket) {
	if s.beaconID == "" {
		return
	}
	delete(h.sockets, s.beaconID)
	h.deregister(s.beaconID)
	s.beaconID = ""
}

// hear takes one frame. What is no JSON or no known action is dropped.
func (h *Hub) hear(s *hubSocket, binary bool, doc []byte) {
	if binary {
		h.mu.Lock()
		hash := s.upload
		s.upload = ""
		h.mu.Unlock()
		if hash != "" {
			s.send(map[string]any{"Action": "WorkResultUploadAck", "WorkItemHash": hash, "Success": true})
		}
		return
	}
	var frame struct {
		Registration
		Result

		Action       string
		BeaconID     string
		WorkItemHash string
		ErrorMessage string
		ProgressData Progress
	}
	if json.Unmarshal(doc, &frame) != nil {
		return
	}
	switch frame.Action {
	case "BeaconRegister":
		h.admit(s, frame.Registration)
	case "BeaconHeartbeat":
		h.mu.Lock()
		h.beat(frame.BeaconID)
		h.mu.Unlock()
	case "WorkComplete":
		h.logged(h.Complete(frame.WorkItemHash, frame.Result))
	case "WorkError":
		h.logged(h.Fail(frame.WorkItemHash, frame.ErrorMessage, frame.Log))
	case "WorkProgress":
		h.Report(frame.WorkItemHash, frame.ProgressData)
	case "WorkResultUpload":
		h.mu.Lock()
		s.upload = frame.WorkItemHash
		h.mu.Unlock()
	case "Deregister":
		h.mu.Lock()
		h.deregister(frame.BeaconID)
		delete(h.sockets, frame.BeaconID)
		s.beaconID = ""
		s.send(map[string]any{"EventType": "Deregistered"})
		h.mu.Unlock()
	}
}

func (h *Hub) logged(err error) {
	if err != nil {
		h.config.Log(err.Error())
	}
}

// admit decides whether a socket may register: not at once when an Authentication beacon has to be asked.
func (h *Hub) admit(s *hubSocket, r Registration) {
	h.mu.Lock()
	reason, ask := h.admission(r)
	h.mu.Unlock()
	decide := func(reason string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		if reason != "" {
			s.send(map[string]any{"EventType": "BeaconRejected", "Reason": reason})
			s.sendRaw(nil)
			return
		}
		b := h.register(r, s.session)
		s.beaconID = b.BeaconID
		h.sockets[b.BeaconID] = s
		s.send(map[string]any{"EventType": "BeaconRegistered", "BeaconID": b.BeaconID})
		h.note()
	}
	if !ask {
		decide(reason)
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.spawn(func() { decide(h.validate(r)) })
}

// admission is what the hub can decide itself; ask says that it cannot.
func (h *Hub) admission(r Registration) (reason string, ask bool) {
	connected := h.config.Auth != nil || h.first("Authentication") != nil
	switch {
	case !h.config.Secured:
		return "", false
	case slices.Contains(r.Capabilities, "Authentication") && !connected:
		if h.config.BootstrapSecret == "" {
			return "Non-promiscuous mode requires UltravisorBootstrapAuthSecret in config", false
		}
		if !same(r.JoinSecret, h.config.BootstrapSecret) {
			return "Bootstrap auth secret mismatch", false
		}
		return "", false
	case !connected:
		return "No auth beacon connected; cannot validate beacon join in non-promiscuous mode", false
	case h.config.Auth != nil:
		if !same(r.JoinSecret, h.config.Auth.JoinSecret) {
			return "Auth beacon denied beacon join", false
		}
		return "", false
	default:
		return "", true
	}
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// validate asks the Authentication beacon, by a work like any other: it is written about, secret and all.
func (h *Hub) validate(r Registration) string {
	o := h.Dispatch(Spec{
		Capability: "Authentication", Action: "AUTH_ValidateBeaconJoin", AffinityKey: "auth", TimeoutMs: 5000,
		Settings: map[string]any{"BeaconName": r.Name, "JoinSecret": r.JoinSecret, "Capabilities": r.Capabilities},
	})
	var answer struct {
		Allowed bool
		Reason  string
	}
	if o.Err != nil {
		return "Admission check failed: " + o.Err.Error()
	}
	if json.Unmarshal(o.Outputs, &answer) == nil && answer.Allowed {
		return ""
	}
	orDefault(&answer.Reason, "Auth beacon denied beacon join")
	return answer.Reason
}
