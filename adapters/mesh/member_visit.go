package mesh

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// memberFrame is the largest frame that is read whole: the largest record, and what stands around it. Of a larger one the
// beginning is read, so that the work in it can be refused.
const memberFrame = ports.MaxLineBytes + 1<<20

// visit is one connection to the hub. One goroutine reads it; whoever has a report writes it.
type visit struct {
	member *Member
	conn   *websocket.Conn
	ctx    context.Context // ends with the connection
	end    context.CancelCauseFunc

	heard   atomic.Int64  // when the last bytes came, since epoch
	held    atomic.Bool   // it is not being read, because of us
	turn    chan struct{} // whoever writes holds it: a small report must not time out behind a large one
	answers chan registered
	gone    chan struct{} // closed when the hub said goodbye

	forgotten atomic.Int64 // how often in a row the hub had forgotten the beacon
	bye       sync.Once

	mu       sync.Mutex
	beaconID string
}

// registered is what a hub answered to a registration: an id, or why not.
type registered struct {
	id     string
	reason string
}

// rejection is a hub's no.
type rejection struct{ reason string }

func (e rejection) Error() string { return "the hub lets this beacon not in: " + e.reason }

// attend keeps one connection until it breaks or ctx ends. joined says whether the hub had taken the beacon in.
func (m *Member) attend(ctx context.Context) (joined bool, err error) {
	if err := m.web.login(ctx); err != nil {
		return false, err
	}
	s, err := m.open(ctx)
	if err != nil {
		return false, err
	}
	var all sync.WaitGroup
	all.Go(s.read)
	all.Go(s.askForLife)
	m.setVisit(s)
	defer func() {
		m.setVisit(nil)
		s.close(errors.New("the visit is over"))
		all.Wait()
	}()
	id, err := s.join(ctx)
	if err != nil {
		return false, err
	}
	m.joined(id)
	return true, s.stay(ctx)
}

// open opens the socket.
func (m *Member) open(ctx context.Context) (*visit, error) {
	ctx, cancel := context.WithTimeout(ctx, m.timing.Connect)
	defer cancel()
	options := &websocket.DialOptions{HTTPClient: m.web.client, HTTPHeader: http.Header{}}
	if cookie := m.web.cookieNow(); cookie != "" {
		options.HTTPHeader.Set("Cookie", cookie)
	}
	conn, response, err := websocket.Dial(ctx, m.web.base+"/", options) //nolint:bodyclose // Dial says that it need not be
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, fmt.Errorf("the hub did not open a socket within %s", m.timing.Connect)
	case response != nil:
		return nil, fmt.Errorf("the hub answered the opening of a socket with %d; is a beacon hub at %s?", response.StatusCode, m.hub)
	default:
		return nil, m.web.plain(err)
	}
	conn.SetReadLimit(-1) // what passes our limit is refused without closing
	s := &visit{member: m, conn: conn, turn: make(chan struct{}, 1), answers: make(chan registered, 8), gone: make(chan struct{})}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	s.hear()
	return s, nil
}

// join registers and waits for the hub's answer.
func (s *visit) join(ctx context.Context) (id string, err error) {
	if err := s.register(); err != nil {
		return "", err
	}
	limit := time.NewTimer(s.member.timing.Register)
	defer limit.Stop()
	select {
	case answer := <-s.answers:
		if answer.id == "" {
			return "", rejection{s.member.hide(answer.reason)}
		}
		return answer.id, nil
	case <-s.ctx.Done():
		select {
		case answer := <-s.answers: // a rejection and the close behind it come together
			if answer.id == "" {
				return "", rejection{s.member.hide(answer.reason)}
			}
		default:
		}
		return "", context.Cause(s.ctx)
	case <-limit.C:
		return "", fmt.Errorf("the hub did not answer the registration within %s", s.member.timing.Register)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// stay beats and looks after the registration until the connection breaks or ctx ends.
func (s *visit) stay(ctx context.Context) error {
	m := s.member
	beat, check, soon := time.NewTicker(m.timing.Beat), time.NewTicker(m.timing.Check), time.NewTimer(m.timing.Soon)
	defer beat.Stop()
	defer check.Stop()
	defer soon.Stop()
	isFirst := true // of the looks soon after a registration
	var looks sync.WaitGroup
	defer looks.Wait()
	defer s.close(errors.New("the visit is over")) // which ends a look
	var looking atomic.Bool
	look := func(again renewal) {
		if looking.CompareAndSwap(false, true) {
			looks.Go(func() {
				defer looking.Store(false)
				m.check(s, again)
			})
		}
	}
	look(never)
	for {
		select {
		case <-beat.C:
			if s.send(newObject(200).str("Action", "BeaconHeartbeat").str("BeaconID", s.id()).done()) != nil {
				return context.Cause(s.ctx)
			}
		case <-check.C:
			look(inDoubt)
		case <-soon.C:
			if s.forgotten.Load() >= forgets {
				continue
			}
			look(ifForgotten)
			if isFirst {
				isFirst = false
				soon.Reset(4 * m.timing.Soon)
			}
		case answer := <-s.answers: // of a registration that was sent again
			if answer.id == "" {
				return rejection{m.hide(answer.reason)}
			}
			m.joined(answer.id)
			look(never)
			if s.forgotten.Load() < forgets {
				isFirst = true
				soon.Reset(m.timing.Soon)
			}
		case <-s.ctx.Done():
			return context.Cause(s.ctx)
		case <-ctx.Done():
			s.leave()
			return ctx.Err()
		}
	}
}

// leave says goodbye: nothing more is pushed then, what is in hand is answered, and the socket closed. Each step has its limit.
func (s *visit) leave() {
	m := s.member
	m.turn(MemberLeaving, "", "")
	if s.send(newObject(200).str("Action", "Deregister").str("BeaconID", s.id()).done()) == nil {
		select {
		case <-s.gone:
		case <-time.After(m.timing.Goodbye):
		case <-s.ctx.Done():
		}
	}
	select {
	case <-m.atRest():
	case <-time.After(m.timing.Answer + m.timing.Goodbye):
	}
	defer time.AfterFunc(m.timing.Goodbye, func() { s.close(errors.New("it was closed")) }).Stop()
	_ = s.conn.Close(websocket.StatusNormalClosure, "")
}

// read takes frames in, in their order, until the connection breaks.
func (s *visit) read() {
	odd := 0
	for {
		kind, in, err := s.conn.Reader(s.ctx)
		if err != nil {
			s.close(s.member.lostSocket(err))
			return
		}
		s.hear()
		in = &lively{in, s}
		if kind == websocket.MessageBinary {
			if _, err := io.Copy(io.Discard, in); err != nil {
				s.close(s.member.lostSocket(err))
				return
			}
			continue
		}
		text, passage, err := s.member.lanes.read(s.ctx, in, memberFrame, &s.held)
		if err != nil && ports.CodeOf(err) != ports.TooLarge && ports.CodeOf(err) != ports.Unavailable || errors.Is(err, errEndless) {
			passage.leave()
			s.close(s.member.lostSocket(err))
			return
		}
		if err == nil {
			err = s.frame(text)
		} else {
			s.salvage(text, err)
		}
		passage.leave()
		if odd++; err == nil {
			odd = 0
		} else {
			s.member.count(func(v *MemberStatus) { v.RefusedFrames++ })
		}
		if odd > maxOdd {
			s.close(errors.New("what answers there sends nothing that a hub sends"))
			return
		}
	}
}

// send writes a text, in its turn, within a time that grows with it.
func (s *visit) send(text []byte) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.member.timing.Send+time.Duration(len(text))*time.Second/slowestOut)
	defer cancel()
	err := s.conn.Write(ctx, websocket.MessageText, text)
	if err != nil {
		s.close(s.member.lostSocket(err))
	}
	return err
}

// askForLife pings a silent hub, and ends the connection when nothing comes. The hub itself never pings, but everything that
// speaks WebSocket answers.
func (s *visit) askForLife() {
	quiet := s.member.timing.Quiet
	tick := time.NewTicker(quiet / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			return
		}
		before := s.heard.Load()
		if s.held.Load() || len(s.turn) > 0 || time.Since(epoch)-time.Duration(before) < quiet {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, quiet/2)
		err := s.conn.Ping(ctx)
		cancel()
		switch {
		case err == nil:
			s.hear()
		case s.heard.Load() == before && !s.held.Load() && len(s.turn) == 0: // what is being written has a limit of its own
			s.close(errors.New("the hub is silent, and answers no ping either"))
			return
		}
	}
}

func (s *visit) hear() { s.heard.Store(int64(time.Since(epoch))) }

// lively is a reader that notes each piece as a sign of life.
type lively struct {
	io.Reader
	visit *visit
}

func (l *lively) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if n > 0 {
		l.visit.hear()
	}
	return n, err
}

// close ends the connection at once, for a reason; the first one counts.
func (s *visit) close(why error) {
	s.end(why)
	_ = s.conn.CloseNow()
}

func (s *visit) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.beaconID
}
