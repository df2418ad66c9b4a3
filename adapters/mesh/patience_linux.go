package mesh

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// dropDead has the kernel break a connection whose other machine does not acknowledge what it was sent: a ping at least. A
// process that is only busy keeps its connection, since its kernel acknowledges for it.
func dropDead(conn net.Conn, after time.Duration) {
	if inner, wrapped := conn.(interface{ NetConn() net.Conn }); wrapped {
		conn = inner.NetConn() // of TLS
	}
	if tcp, ok := conn.(syscall.Conn); ok {
		if raw, err := tcp.SyscallConn(); err == nil {
			_ = raw.Control(func(fd uintptr) { // without it the kernel's own time holds, a quarter of an hour
				_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(after.Milliseconds()))
			})
		}
	}
}
