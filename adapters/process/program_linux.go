package process

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// attributes gives a child a process group of its own, and has the kernel kill it when the thread that started it ends:
// that thread waits for the child, so it ends before it only with the host.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit returns once the child is dead and leaves it a zombie, so that its number, which is the group's too, still
// belongs to it.
func awaitExit(pid int) {
	for errors.Is(unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil), unix.EINTR) {
	}
}
