//go:build !linux

package mesh

import (
	"net"
	"time"
)

// dropDead is for Linux; elsewhere the kernel's own time holds.
func dropDead(net.Conn, time.Duration) {}
