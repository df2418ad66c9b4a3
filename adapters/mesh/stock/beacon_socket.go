package stock

// A beacon that holds a socket: it registers by a frame, gets its work pushed, and reconnects when the socket closes, later
// with each attempt.

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/coder/websocket"
)

// frameLimit is what the stock software accepts as one frame.
const frameLimit = 256 << 20

// socket is one open socket.
type socket struct {
	conn    *websocket.Conn
	uploads sync.Mutex // what announces a binary frame goes right before it
	left    bool       // given up on purpose: its end is no reason to reconnect; under the lock of the beacon
}

func (s *socket) send(ctx context.Context, frame any) {
	doc, err := json.Marshal(frame)
	if err != nil {
		return
	}
	_ = s.conn.Write(ctx, websocket.MessageText, doc) // a socket that is gone is noticed by its reader
}

func (s *socket) close() { _ = s.conn.Close(websocket.StatusNoStatusRcvd, "") }

// connect opens a socket and registers over it. done is called once: with nil when the hub has registered the beacon, with an
// error when the socket failed before; never, when the hub closed it without a word.
func (b *Beacon) connect(done func(error)) {
	if !b.awake(b.life) {
		return
	}
	b.mu.Lock()
	header := http.Header{}
	if b.cookie != "" {
		header.Set("Cookie", b.cookie)
	}
	b.mu.Unlock()
	conn, res, err := websocket.Dial(b.life, b.address("ws", ""), &websocket.DialOptions{
		HTTPClient: b.http, HTTPHeader: header, CompressionMode: websocket.CompressionContextTakeover,
		OnPingReceived: func(context.Context, []byte) bool { return !b.isFrozen() },
	})
	if err != nil {
		if res != nil && res.Body != nil {
			res.Body.Close()
		}
		b.closed(nil)
		done(err)
		return
	}
	conn.SetReadLimit(frameLimit)
	s := &socket{conn: conn}
	b.change(func() {
		b.socket = s
		b.counts.Sockets++
	})
	frame := b.registration()
	frame["Action"] = "BeaconRegister"
	s.send(b.life, frame)
	b.spawn(func() { b.listen(s, done) })
}

// listen takes frames until the socket closes.
func (b *Beacon) listen(s *socket, done func(error)) {
	defer func() { _ = s.conn.CloseNow() }()
	told := false
	for {
		_, doc, err := s.conn.Read(b.life)
		if err != nil {
			b.closed(s)
			if !told && failed(err) {
				done(err)
			}
			return
		}
		if !b.awake(b.life) {
			return
		}
		if b.hear(doc) && !told {
			told = true
			beater := b.every(b.config.HeartbeatInterval, b.beatSocket)
			b.change(func() { b.running, b.beater = true, beater })
			done(nil)
		}
	}
}

// failed tells a socket that broke from one that was closed, with or without goodbye.
func failed(err error) bool {
	return websocket.CloseStatus(err) == -1 && !errors.Is(err, io.EOF) && !errors.Is(err, context.Canceled)
}

// hear takes one frame; it says whether it was the answer to a registration.
func (b *Beacon) hear(doc []byte) bool {
	var frame struct {
		EventType string
		BeaconID  string
		WorkItem  *Item
	}
	if json.Unmarshal(doc, &frame) != nil {
		return false
	}
	switch {
	case frame.EventType == "BeaconRegistered":
		b.registered(frame.BeaconID)
		return true
	case frame.EventType == "WorkItem" && frame.WorkItem != nil:
		b.mu.Lock()
		full := b.active >= b.config.MaxConcurrent
		b.mu.Unlock()
		if full {
			b.change(func() { b.counts.Dropped++ })
			return false
		}
		b.take(frame.WorkItem)
	case frame.EventType == "Deregistered":
		b.change(func() { b.id = "" })
	}
	return false
}

// closed is what follows the end of a socket.
func (b *Beacon) closed(s *socket) {
	lost := false
	b.change(func() {
		if s == nil || b.socket == s {
			b.socket = nil
		}
		lost = b.running && !b.authenticating && !b.reconnecting && (s == nil || !s.left)
	})
	if lost {
		b.reconnectLater()
	}
}

// reconnectLater waits 10 s, 20 s, 40 s and so on, up to 300 s.
func (b *Beacon) reconnectLater() {
	b.mu.Lock()
	if b.reconnecting || b.authenticating {
		b.mu.Unlock()
		return
	}
	b.reconnecting = true
	b.attempts++
	delay := b.config.ReconnectInterval
	for n := 1; n < b.attempts && delay < maxReconnectDelay; n++ {
		delay *= 2
	}
	b.mu.Unlock()
	b.spawn(func() {
		if !pause(b.life, b.config.Clock, min(delay, maxReconnectDelay)) {
			return
		}
		b.change(func() { b.reconnecting = false })
		b.reconnect()
	})
}

// reconnect tries a socket again, and HTTP when it fails.
func (b *Beacon) reconnect() {
	b.mu.Lock()
	if b.authenticating {
		b.mu.Unlock()
		return
	}
	b.authenticating, b.cookie = true, ""
	b.counts.Reconnects++
	b.mu.Unlock()
	b.endBeating()
	err := b.authenticate()
	b.change(func() { b.authenticating = false })
	if err != nil {
		b.reconnectLater()
		return
	}
	b.connect(func(err error) {
		if err != nil {
			b.change(func() { b.useSocket = false })
			if b.startPolling() != nil {
				b.reconnectLater()
				return
			}
		}
		b.change(func() { b.attempts = 0 })
	})
}

// Reconnect gives up the socket and connects again at once, without the wait of the stock client. A busy hub may notice the end
// of the old socket only after the registration over the new one.
func (b *Beacon) Reconnect() {
	if s := b.leave(); s != nil {
		_ = s.conn.CloseNow()
	}
	b.spawn(b.reconnect)
}

// leave takes the socket from the beacon.
func (b *Beacon) leave() *socket {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.socket
	if b.socket = nil; s != nil {
		s.left = true
	}
	return s
}

// DropSocket closes the connection under the socket without a goodbye. The beacon reconnects as the stock client does.
func (b *Beacon) DropSocket() {
	b.mu.Lock()
	s := b.socket
	b.mu.Unlock()
	if s != nil {
		_ = s.conn.CloseNow()
	}
}

func (b *Beacon) beatSocket() {
	b.mu.Lock()
	id, running, s := b.id, b.running, b.socket
	b.mu.Unlock()
	if !running || id == "" || s == nil || !b.awake(b.life) {
		return
	}
	b.change(func() { b.counts.Beats++ })
	s.send(b.life, map[string]any{"Action": "BeaconHeartbeat", "BeaconID": id})
}
