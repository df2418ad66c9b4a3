package mesh

import (
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTheKernelIsAskedToBreakAConnectionToADeadMachine(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	dropDead(conn, time.Minute)
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if ms, err := unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT); err != nil || ms != 60_000 {
			t.Errorf("the time is %d ms, %v", ms, err)
		}
	}); err != nil {
		t.Fatal(err)
	}
}
