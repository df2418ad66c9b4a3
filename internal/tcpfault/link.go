// Package tcpfault is a bad network for tests: a Link stands between clients and a server and does to their connections what networks
// do.
//
//	link := tcpfault.Open(t, server.Addr())
//	client.Dial(link.Addr())
//	link.Swallow()          // packets vanish, nobody is told
//	link.Heal()             // new connections work again; those that lost something stay silent
//
//	link.Hold()             // bytes wait, and go on at Heal
//	link.Delay(d)           // bytes come late
//	link.DropAnswers()      // what the server says vanishes: it did what it was asked to, and nobody knows
//	link.Refuse()           // nobody listens any more; connections live on
//	link.Cut()              // every connection is reset; new ones work
package tcpfault

import (
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"
)

type weather struct {
	hold    bool
	swallow [2]bool // by direction
	delay   time.Duration
}

// The directions.
const (
	toServer = iota
	toClient
)

// Link passes connections on to one address. Its methods may be called from any goroutine.
type Link struct {
	target string
	port   int

	mu       sync.Mutex
	listener net.Listener
	weather  weather
	changed  chan struct{} // closed when the weather changes
	pairs    map[*pair]struct{}
	opened   int
	work     sync.WaitGroup
}

// pair is a client's connection and the one to the server.
type pair struct {
	ends [2]net.Conn // the client's, the server's
	once sync.Once
	over chan struct{}
}

func (p *pair) close() {
	p.once.Do(func() {
		close(p.over)
		for _, c := range p.ends {
			_ = c.Close()
		}
	})
}

// reset closes without a farewell, as a machine that knows of no such connection does.
func (p *pair) reset() {
	for _, c := range p.ends {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
	p.close()
}

// Open makes a link to an address, which ends with the test.
func Open(t testing.TB, target string) *Link {
	t.Helper()
	l := &Link{target: target, changed: make(chan struct{}), pairs: map[*pair]struct{}{}}
	for {
		// Below the ports that the kernel gives to clients, so that it can be had again after Refuse.
		l.port = 10000 + rand.IntN(5000)
		if l.listen() == nil {
			break
		}
	}
	t.Cleanup(func() {
		l.Refuse()
		l.Cut()
		l.work.Wait()
	})
	return l
}

// Addr is where clients find the link.
func (l *Link) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.port)) }

// Opened counts the connections that clients have opened so far, and those that are open now.
func (l *Link) Opened() (ever, now int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened, len(l.pairs)
}

func (l *Link) listen() error {
	listener, err := net.Listen("tcp", l.Addr())
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener = listener
	l.work.Go(func() { l.accept(listener) })
	return nil
}

func (l *Link) set(change func(*weather)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(&l.weather)
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *Link) look() (weather, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.weather, l.changed
}

// Swallow lets everything vanish that either side says.
func (l *Link) Swallow() { l.set(func(w *weather) { w.swallow = [2]bool{true, true} }) }

// DropAnswers lets vanish what the server says.
func (l *Link) DropAnswers() { l.set(func(w *weather) { w.swallow[toClient] = true }) }

// Hold keeps everything back until Heal.
func (l *Link) Hold() { l.set(func(w *weather) { w.hold = true }) }

// Delay lets everything come later, each piece by as much.
func (l *Link) Delay(d time.Duration) { l.set(func(w *weather) { w.delay = d }) }

// Heal ends all that.
func (l *Link) Heal() error {
	l.set(func(w *weather) { *w = weather{} })
	l.mu.Lock()
	refusing := l.listener == nil
	l.mu.Unlock()
	if refusing {
		return l.listen()
	}
	return nil
}

// Refuse lets nobody connect any more.
func (l *Link) Refuse() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listener != nil {
		_ = l.listener.Close()
		l.listener = nil
	}
}

// Cut resets every connection that is open.
func (l *Link) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.pairs {
		p.reset()
	}
}

func (l *Link) accept(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}
		l.work.Go(func() { l.serve(listener, client) })
	}
}

func (l *Link) serve(listener net.Listener, client net.Conn) {
	server, err := net.Dial("tcp", l.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p := &pair{ends: [2]net.Conn{client, server}, over: make(chan struct{})}
	l.mu.Lock()
	if l.listener != listener { // refused meanwhile
		l.mu.Unlock()
		p.reset()
		return
	}
	l.pairs[p] = struct{}{}
	l.opened++
	l.mu.Unlock()
	var both sync.WaitGroup
	both.Go(func() { l.pump(p, toServer) })
	both.Go(func() { l.pump(p, toClient) })
	both.Wait()
	p.close()
	l.mu.Lock()
	delete(l.pairs, p)
	l.mu.Unlock()
}

// pump passes one direction of a connection on. A direction of which something was lost says nothing any more, not even its end.
func (l *Link) pump(p *pair, direction int) {
	from, to := p.ends[direction], p.ends[1-direction]
	buf := make([]byte, 32<<10)
	lost := false
	for {
		n, err := from.Read(buf)
		if err != nil && !errors.Is(err, io.EOF) {
			p.close()
			return
		}
		if !l.pass(p, direction) {
			lost = true
		}
		switch {
		case lost && err != nil:
			<-p.over
			return
		case lost:
		case err != nil:
			if tcp, ok := to.(*net.TCPConn); ok {
				_ = tcp.CloseWrite()
			}
			return
		default:
			if _, err := to.Write(buf[:n]); err != nil {
				p.close()
				return
			}
		}
	}
}

// pass waits as long as the weather says, and says whether what came arrives.
func (l *Link) pass(p *pair, direction int) bool {
	late := false
	for {
		w, changed := l.look()
		var timer <-chan time.Time
		switch {
		case w.swallow[direction]:
			return false
		case w.hold:
		case w.delay > 0 && !late:
			timer = time.After(w.delay)
		default:
			return true
		}
		select {
		case <-changed:
		case <-timer:
			late = true
		case <-p.over:
			return false
		}
	}
}
