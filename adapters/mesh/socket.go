package mesh

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// socket is one open WebSocket. One goroutine reads it, the request's own; another one writes what stands in its outbox. Both
// end with the connection, and the hub waits for both.
type socket struct {
	id     uint64
	hub    *Hub
	who    visitor
	opened time.Time
	ctx    context.Context // ends with the socket
	cancel context.CancelFunc

	heard   atomic.Int64 // when the last bytes came, since epoch
	busy    atomic.Bool  // it is not being read, because of us
	pinging atomic.Bool
	pings   sync.WaitGroup
	odd     int    // frames in a row that were refused
	shut    bool   // nothing that it says counts any more
	uploads string // the work whose file the next binary frame is

	mu     sync.Mutex
	conn   *websocket.Conn
	raw    net.Conn
	outbox []outgoing
	more   chan struct{}
}

// outgoing is a frame that waits to be written: a text, or a work whose text is made when it goes out.
type outgoing struct {
	text  []byte
	work  *work
	close websocket.StatusCode // and no frame
}

// Bounds of a socket.
const (
	maxOdd     = 100         // refused frames in a row
	maxReplies = 64          // frames in the outbox beside works
	slowestOut = 256 << 10   // bytes a second
	farewell   = time.Second // for a peer to answer that it closes too
)

var epoch = time.Now()

// serve reads until the connection ends, in whatever way.
func (s *socket) serve() {
	var writer sync.WaitGroup
	writer.Go(s.write)
	defer func() {
		s.end()
		writer.Wait()
		_ = s.conn.CloseNow()
	}()
	for {
		kind, in, err := s.conn.Reader(context.Background())
		if err != nil {
			return
		}
		s.hear()
		in = &heard{in, s}
		if kind == websocket.MessageBinary || s.shut {
			if _, err := io.Copy(io.Discard, in); err != nil {
				return
			}
			s.upload()
			continue
		}
		if !s.take(in) {
			return
		}
	}
}

// take takes a text frame in. false: the connection is of no use any more.
func (s *socket) take(in io.Reader) bool {
	text, passage, err := s.hub.lanes.read(s.ctx, in, s.hub.limits.Frame, &s.busy)
	defer passage.leave()
	switch code := ports.CodeOf(err); {
	case err == nil:
		err = s.frame(text)
	case (code == ports.TooLarge || code == ports.Unavailable) && !errors.Is(err, errEndless):
	default:
		return false
	}
	if err == nil {
		s.odd = 0
		return true
	}
	s.hub.counts.refusedFrames.Add(1)
	s.salvage(text, err)
	s.put(outgoing{text: refusedFrame(err)})
	if s.odd++; s.odd > maxOdd {
		s.closeWith(websocket.StatusPolicyViolation)
	}
	return true
}

// hear notes a sign of life.
func (s *socket) hear() { s.heard.Store(int64(time.Since(epoch))) }

// heard is a reader that notes each piece as a sign of life.
type heard struct {
	io.Reader
	socket *socket
}

func (h *heard) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if n > 0 {
		h.socket.hear()
	}
	return n, err
}

// put adds a frame to the outbox. A peer that reads so slowly that too many stand there is let go. It never waits.
func (s *socket) put(next outgoing) {
	s.mu.Lock()
	full := len(s.outbox) >= s.hub.limits.Slots+maxReplies
	if !full {
		s.outbox = append(s.outbox, next)
	}
	s.mu.Unlock()
	if full {
		s.end()
		return
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
}

// next takes the first frame of the outbox.
func (s *socket) next() (outgoing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.outbox) == 0 {
		return outgoing{}, false
	}
	first := s.outbox[0]
	s.outbox[0] = outgoing{}
	if s.outbox = s.outbox[1:]; len(s.outbox) == 0 {
		s.outbox = nil
	}
	return first, true
}

// write writes the outbox, and asks a silent peer for a sign of life.
func (s *socket) write() {
	defer s.pings.Wait()
	tick := time.NewTicker(s.hub.timing.Ping)
	defer tick.Stop()
	for {
		select {
		case <-s.more:
		case <-tick.C:
			s.askForLife()
		case <-s.ctx.Done():
			return
		}
		for {
			next, some := s.next()
			if !some {
				break
			}
			if !s.send(next) {
				s.end()
				return
			}
		}
	}
}

// send writes one frame within a time that grows with it. false: the connection is of no use any more.
func (s *socket) send(next outgoing) bool {
	text := next.text
	if next.close != 0 {
		defer time.AfterFunc(farewell, s.end).Stop()
		_ = s.conn.Close(next.close, "")
		return false
	}
	if w := next.work; w != nil {
		wanted := false
		s.hub.step(func(now time.Time) { wanted = w.conn == s.id && s.hub.works.send(w, now) })
		if !wanted {
			return true
		}
		text = s.hub.deliver(w)
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.hub.timing.Write+time.Duration(len(text))*time.Second/slowestOut)
	defer cancel()
	return s.conn.Write(ctx, websocket.MessageText, text) == nil
}

// askForLife pings a peer of which nothing was heard for a while. What comes in meanwhile, also in the middle of a large frame,
// will do as well.
func (s *socket) askForLife() {
	quiet := time.Since(epoch) - time.Duration(s.heard.Load())
	if quiet < s.hub.timing.Ping || s.busy.Load() && quiet < sendGrace || !s.pinging.CompareAndSwap(false, true) {
		return
	}
	before := s.heard.Load()
	s.pings.Go(func() {
		defer s.pinging.Store(false)
		ctx, cancel := context.WithTimeout(context.Background(), s.hub.timing.Ping)
		defer cancel()
		if err := s.conn.Ping(ctx); err != nil && (ctx.Err() == nil || !s.mayBeBusy(before)) {
			s.end()
		}
	})
}

// pong is the answer to a ping, in time or late.
func (s *socket) pong(context.Context, []byte) {
	s.hear()
	s.speak(func(*beacon, time.Time) {})
}

// mayBeBusy says whether a peer that did not answer may yet: one that is at a work answers nothing meanwhile where that work
// has its only thread, and reports it over this socket afterwards; so it is let go only with its machine (see patience_linux.go).
// One that has no work in hand is let go when it was silent for long. Until it is heard it gets no new work.
func (s *socket) mayBeBusy(before int64) (may bool) {
	s.hub.step(func(time.Time) {
		if s.heard.Load() != before {
			may = true
			return
		}
		may = time.Since(epoch)-time.Duration(before) < s.hub.timing.Silence
		if b := s.hub.registry.byConn[s.id]; b != nil {
			s.hub.works.mute(b.name, s.id)
			may = may || s.hub.works.busy(b.name, s.id)
		}
	})
	return may
}

// closeWith closes with a code, behind what stands in the outbox; the peer has a moment to answer.
func (s *socket) closeWith(code websocket.StatusCode) {
	s.shut = true
	s.put(outgoing{close: code})
}

// letGo closes with a code, within a moment, whatever stands in the outbox.
func (s *socket) letGo(code websocket.StatusCode) {
	s.put(outgoing{close: code})
	time.AfterFunc(farewell, s.end)
}

// end ends the connection at once. It never waits, and may be called often.
func (s *socket) end() {
	s.cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.raw != nil {
		_ = s.raw.Close()
	}
}
