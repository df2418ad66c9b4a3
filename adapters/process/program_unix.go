//go:build unix && !linux

package process

import "syscall"

func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// awaitExit has nothing to wait with here; the group is killed right after the child is reaped.
func awaitExit(int) {}
