package main

import (
	"fmt"
	"os"

	"holdfast/internal/hostile"
)

// What goes wrong before the handshake.

func before(self hostile.Program) {
	if !self.On() {
		return
	}
	switch self.Fault {
	case hostile.FreezeBefore:
		self.Note()
		select {}
	case hostile.FreezeIn:
		self.Note()
		fmt.Print("1|1|unix|/tmp/")
		select {}
	case hostile.ExitBefore:
		self.Note()
		fmt.Fprintln(os.Stderr, "the tape is torn")
		os.Exit(3)
	}
}
