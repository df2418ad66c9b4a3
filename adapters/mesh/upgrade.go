package mesh

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// upgrade makes a socket of a request, or refuses it as a request.
func (h *Hub) upgrade(w http.ResponseWriter, r *http.Request) {
	who, err := h.access.admitSocket(r, h.clock())
	if err != nil {
		refuse(w, err)
		return
	}
	s := &socket{hub: h, who: who, more: make(chan struct{}, 1)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer s.cancel()
	h.step(func(now time.Time) {
		switch {
		case h.closed:
			err = errStopping
		case len(h.sockets) >= h.limits.Sockets:
			err = ports.Errorf(ports.Unavailable, "", "%d sockets are open, the limit is %d", len(h.sockets), h.limits.Sockets)
		default:
			h.nextConn++
			s.id, s.opened = h.nextConn, now
			h.sockets[s.id] = s
			h.ended.Add(1)
		}
	})
	if err != nil {
		refuse(w, err)
		return
	}
	defer h.ended.Done()
	defer h.step(func(now time.Time) {
		h.lost(s.id, now)
		delete(h.sockets, s.id)
	})
	under := &hijacked{ResponseWriter: w}
	conn, err := websocket.Accept(under, r, &websocket.AcceptOptions{OnPongReceived: s.pong})
	if err != nil {
		return // it answered
	}
	dropDead(under.conn, h.timing.Silence)
	conn.SetReadLimit(-1) // a frame that passes ours is refused without closing
	s.hear()
	s.mu.Lock()
	s.conn, s.raw = conn, under.conn
	s.mu.Unlock()
	if s.ctx.Err() != nil {
		s.end() // in the meantime
	}
	s.serve()
}

// hijacked keeps the connection below a socket, which can be closed at any moment without waiting for anybody.
type hijacked struct {
	http.ResponseWriter
	conn net.Conn
}

func (h *hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffers, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, buffers, err
}
