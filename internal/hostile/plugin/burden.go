package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"holdfast/internal/hostile"
)

// What a plugin can burden the machine and the host with. Each has a bound of its own.
const (
	floodEach  = 20 << 20 // bytes of each of the five forms
	eatMost    = 1 << 30
	eatStep    = 16 << 20
	fillMost   = 64 << 20
	childLives = 2 * time.Minute
	filesMost  = 4000
	litterMost = 50
)

// The real streams, before go-plugin puts pipes of its own in their place.
var stdout, stderr = os.Stdout, os.Stderr

// odd is log lines whose members have the wrong types, and some that are hardly lines.
var odd = strings.Join([]string{
	`{"@message":5,"@level":{},"@timestamp":[]}`, `{"@level":"info","@message":["a"]}`, `{"@timestamp":1,"@message":null}`,
	`[]`, `{`, `"`, `null`, `{"@message":"x","@level":7,"@module":false,"n":1e400,"deep":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`,
	"\x00\x00\xff\xfe", "panic: no panic", "1|1|unix|/tmp/again|grpc", "",
}, "\n")

// flood prints 100 MB.
func flood() {
	line, long := []byte(strings.Repeat("noise ", 20)+"\n"), bytes.Repeat([]byte("n"), 1<<16)
	var all sync.WaitGroup
	for _, f := range []struct {
		to   *os.File
		text []byte
	}{{stdout, long}, {stdout, line}, {stderr, long}, {stderr, line}, {stderr, []byte(odd)}} {
		all.Go(func() {
			for n := 0; n < floodEach; n += len(f.text) {
				if _, err := f.to.Write(f.text); err != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// beChild is the argument of children.
const beChild = "child"

// fork leaves two children that hold the streams.
func fork(self hostile.Program, how *syscall.SysProcAttr) {
	for range 2 {
		cmd := exec.Command(self.Path, beChild)
		cmd.SysProcAttr = how
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, stderr
		_ = cmd.Start()
	}
}

func child() { <-time.After(childLives) }

var eaten [][]byte

func eat() {
	for n := 0; n < eatMost; n += eatStep {
		piece := make([]byte, eatStep)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		eaten = append(eaten, piece)
		<-time.After(20 * time.Millisecond)
	}
}

// intrude writes where it should only read, and where it has nothing to say.
func intrude() {
	for _, path := range []string{"/proc/self/fd/0", fmt.Sprintf("/proc/%d/fd/0", os.Getppid()), fmt.Sprintf("/proc/%d/fd/2", os.Getppid())} {
		f, err := os.OpenFile(path, os.O_WRONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		for range 20 {
			if _, err := f.WriteString("1|1|unix|/tmp/x|grpc\n{\"@message\":5}\n"); err != nil {
				break
			}
		}
		// The write end of its own stdin stays open: so the end of the host does not show there.
	}
}

func closeStreams() {
	for fd := range 3 {
		_ = syscall.Close(fd)
	}
}

func fill(dir string) {
	if os.MkdirAll(dir, 0o700) != nil {
		return
	}
	block := bytes.Repeat([]byte("f"), 1<<20)
	for n := 0; n < fillMost; n += len(block) {
		if os.WriteFile(filepath.Join(dir, fmt.Sprint(n)), block, 0o600) != nil {
			return
		}
	}
}

var held []*os.File

func hold() {
	for range filesMost {
		f, err := os.Open(os.DevNull)
		if err != nil {
			return
		}
		held = append(held, f)
	}
}

// litter leaves things where the host's sockets are, and dies without a chance to take them along.
func litter(dir string) {
	for n := range litterMost {
		if l, err := net.Listen("unix", filepath.Join(dir, fmt.Sprintf("s%d", n))); err == nil {
			l.(*net.UnixListener).SetUnlinkOnClose(false)
		}
	}
	locked := filepath.Join(dir, "locked")
	_ = os.MkdirAll(filepath.Join(locked, "deep"), 0o700)
	_ = os.WriteFile(filepath.Join(locked, "file"), nil, 0o400)
	_ = os.Chmod(locked, 0o500)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
}
