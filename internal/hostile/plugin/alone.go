package main

import (
	"os"
	"syscall"
	"time"

	"holdfast/internal/hostile"
)

// What goes wrong by itself, whatever is asked.

// deeds are done once, when the fault begins.
var deeds = map[hostile.Fault]func(hostile.Program){
	hostile.Stopped:      func(hostile.Program) { freeze() },
	hostile.ExitLater:    func(hostile.Program) { <-time.After(2 * time.Second); os.Exit(0) },
	hostile.Flood:        func(hostile.Program) { flood() },
	hostile.ForkInside:   func(self hostile.Program) { fork(self, &syscall.SysProcAttr{}); freeze() },
	hostile.ForkOutside:  func(self hostile.Program) { fork(self, &syscall.SysProcAttr{Setsid: true}); freeze() },
	hostile.EatMemory:    func(hostile.Program) { eat() },
	hostile.HostStreams:  func(hostile.Program) { intrude() },
	hostile.CloseStreams: func(hostile.Program) { closeStreams() },
	hostile.FillDisk:     func(self hostile.Program) { fill(self.Path + ".fill") },
	hostile.ManyFiles:    func(hostile.Program) { hold() },
	hostile.Unlink:       func(hostile.Program) { _ = os.RemoveAll(os.Getenv("PLUGIN_UNIX_SOCKET_DIR")) },
	hostile.Litter:       func(hostile.Program) { litter(os.Getenv("PLUGIN_UNIX_SOCKET_DIR")) },
}

// alone waits for the fault to begin, and does it.
func alone(self hostile.Program) {
	deed := deeds[self.Fault]
	if deed == nil {
		return
	}
	for !self.On() {
		<-time.After(5 * time.Millisecond)
	}
	self.Note()
	deed(self)
}

func freeze() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
