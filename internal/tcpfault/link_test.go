package tcpfault_test

import (
	"bufio"
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"holdfast/internal/tcpfault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo answers every line with itself, and counts them.
type echo struct {
	addr string

	mu    sync.Mutex
	lines int
}

func (e *echo) heard() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lines
}

func startEcho(t *testing.T) *echo {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{addr: l.Addr().String()}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() {
				defer conn.Close()
				for in := bufio.NewScanner(conn); in.Scan(); {
					e.mu.Lock()
					e.lines++
					e.mu.Unlock()
					if _, err := conn.Write(append(in.Bytes(), '\n')); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		work.Wait()
	})
	return e
}

func dial(t *testing.T, link *tcpfault.Link) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", link.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// say sends a line and waits for its echo.
func say(conn net.Conn, patience time.Duration) error {
	if _, err := conn.Write([]byte("hello\n")); err != nil {
		return err
	}
	return hear(conn, patience)
}

func hear(conn net.Conn, patience time.Duration) error {
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 6))
	return err
}

const (
	soon  = 50 * time.Millisecond // for what must not come
	later = 10 * time.Second      // for what must
)

func silent(err error) bool { return errors.Is(err, os.ErrDeadlineExceeded) }

func setUp(t *testing.T) (*echo, *tcpfault.Link, net.Conn) {
	t.Helper()
	e := startEcho(t)
	link := tcpfault.Open(t, e.addr)
	conn := dial(t, link)
	if err := say(conn, later); err != nil {
		t.Fatal(err)
	}
	return e, link, conn
}

func heal(t *testing.T, link *tcpfault.Link) {
	t.Helper()
	if err := link.Heal(); err != nil {
		t.Fatal(err)
	}
	if err := say(dial(t, link), later); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

func TestSwallowedBytesNeverComeAndTheirConnectionStaysSilent(t *testing.T) {
	t.Parallel()
	e, link, conn := setUp(t)
	link.Swallow()
	if err := say(conn, soon); !silent(err) {
		t.Errorf("it says %v", err)
	}
	if err := say(dial(t, link), soon); !silent(err) {
		t.Errorf("a new connection says %v", err)
	}
	heal(t, link)
	if err := say(conn, soon); !silent(err) || e.heard() != 2 {
		t.Errorf("after it is healed it says %v, and the server heard %d lines", err, e.heard())
	}
}

func TestDroppedAnswersAreOfWhatTheServerDid(t *testing.T) {
	t.Parallel()
	e, link, conn := setUp(t)
	link.DropAnswers()
	if err := say(conn, soon); !silent(err) {
		t.Errorf("it says %v", err)
	}
	for end := time.Now().Add(later); e.heard() < 2 && time.Now().Before(end); {
		_ = hear(conn, time.Millisecond)
	}
	if e.heard() != 2 {
		t.Errorf("the server heard %d lines", e.heard())
	}
	heal(t, link)
}

func TestHeldBytesGoOnWhenTheLinkIsHealed(t *testing.T) {
	t.Parallel()
	_, link, conn := setUp(t)
	link.Hold()
	if err := say(conn, soon); !silent(err) {
		t.Errorf("it says %v", err)
	}
	heal(t, link)
	if err := hear(conn, later); err != nil {
		t.Errorf("it says %v", err)
	}
}

func TestDelayedBytesComeLate(t *testing.T) {
	t.Parallel()
	_, link, conn := setUp(t)
	link.Delay(soon)
	began := time.Now()
	if err := say(conn, later); err != nil || time.Since(began) < 2*soon {
		t.Errorf("after %s: %v", time.Since(began), err)
	}
}

func TestARefusingLinkLetsOldConnectionsGoOn(t *testing.T) {
	t.Parallel()
	_, link, conn := setUp(t)
	link.Refuse()
	if _, err := net.Dial("tcp", link.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("it says %v", err)
	}
	if err := say(conn, later); err != nil {
		t.Error(err)
	}
	heal(t, link)
}

func TestACutConnectionIsReset(t *testing.T) {
	t.Parallel()
	_, link, conn := setUp(t)
	link.Cut()
	if err := hear(conn, later); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("it says %v", err)
	}
	heal(t, link)
	if ever, _ := link.Opened(); ever != 2 {
		t.Errorf("%d connections were opened", ever)
	}
}

func TestTheEndOfEitherSideReachesTheOther(t *testing.T) {
	t.Parallel()
	_, link, conn := setUp(t)
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := hear(conn, later); err == nil || silent(err) {
		t.Errorf("it says %v", err)
	}
	_ = conn.Close()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(later); ; <-tick.C {
		if _, now := link.Opened(); now == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the connection to the server stays")
		}
	}
}
