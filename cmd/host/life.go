package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"holdfast/adapters/process"
	"holdfast/adapters/wire"
)

// The host forgives a plugin much: it drops what is printed before the handshake, kills what does not stop, sweeps what was
// left behind. Whoever certifies a plugin must see that; so here one is started plainly, with nothing between it and the case.

// bare is one plain start of a plugin.
type bare struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	dir    string        // for its socket
	line   chan string   // of its handshake on stdout; closed without one when stdout ends
	dead   chan struct{} // state says how it ended
	exited chan struct{} // its streams are read, too
	state  *os.ProcessState
	conn   *grpc.ClientConn
	spoken wire.Version // that the handshake chose

	mu     sync.Mutex
	stdout bytes.Buffer // the beginning
	stderr bytes.Buffer
}

// keptBytes is how much of a stream is kept to be quoted.
const keptBytes = 4 << 10

// startBare starts a plugin as a host does, or, without the cookie, as somebody at a terminal does.
func startBare(spec *process.Spec, cookie bool) (*bare, error) {
	dir, err := os.MkdirTemp("", "hf") // short: it is part of the path of a socket
	if err != nil {
		return nil, err
	}
	b := &bare{cmd: exec.Command(spec.Path, spec.Args...), dir: dir, line: make(chan string, 1), dead: make(chan struct{}), exited: make(chan struct{})}
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	b.cmd.Env = environment(dir, cookie)
	stdin, errIn := b.cmd.StdinPipe()
	stdout, errOut := b.cmd.StdoutPipe()
	stderr, errErr := b.cmd.StderrPipe()
	err = errors.Join(errIn, errOut, errErr)
	if err == nil {
		err = b.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	b.stdin = stdin
	go b.live(stdout, stderr)
	return b, nil
}

// environment is what a plugin finds: what the host passes on, and the handshake.
func environment(dir string, cookie bool) (env []string) {
	for _, name := range []string{"PATH", "HOME", "TZ", "LANG", "TMPDIR"} {
		if value, set := os.LookupEnv(name); set {
			env = append(env, name+"="+value)
		}
	}
	if !cookie {
		return env
	}
	return append(env, wire.CookieKey+"="+wire.CookieValue, wire.LogLevelKey+"=info",
		"PLUGIN_UNIX_SOCKET_DIR="+dir, "PLUGIN_PROTOCOL_VERSIONS="+offered())
}

// offered lists the versions of the service that are spoken here.
func offered() string {
	var all []string
	for _, n := range slices.Sorted(maps.Keys(wire.Versions)) {
		all = append(all, strconv.Itoa(n))
	}
	return strings.Join(all, ",")
}

// trailTime is how long a dead plugin's streams may stay open: a child of its can hold them.
const trailTime = 300 * time.Millisecond

// live reads what the plugin prints until it is dead.
func (b *bare) live(stdout, stderr io.ReadCloser) {
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(b.line)
		all := bufio.NewReader(io.TeeReader(stdout, beginning{b, &b.stdout}))
		for {
			line, err := all.ReadString('\n')
			if err != nil {
				break
			}
			if looksLikeHandshake(line) {
				b.line <- strings.TrimRight(line, "\r\n")
				break
			}
		}
		_, _ = io.Copy(io.Discard, all)
	})
	reading.Go(func() { _, _ = io.Copy(beginning{b, &b.stderr}, stderr) })
	b.state, _ = b.cmd.Process.Wait() // not of cmd, which would close the streams at once
	close(b.dead)
	closeStreams := func() { _, _ = stdout.Close(), stderr.Close() }
	late := time.AfterFunc(trailTime, closeStreams)
	reading.Wait()
	late.Stop()
	closeStreams()
	close(b.exited)
}

func looksLikeHandshake(line string) bool { return strings.Count(line, "|") >= 4 }

// beginning writes the first of what it gets.
type beginning struct {
	b  *bare
	to *bytes.Buffer
}

func (k beginning) Write(p []byte) (int, error) {
	k.b.mu.Lock()
	defer k.b.mu.Unlock()
	k.to.Write(p[:min(len(p), keptBytes-k.to.Len())])
	return len(p), nil
}

func (b *bare) said(stream *bytes.Buffer) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return stream.String()
}

// awaitEnd says whether the plugin ended within a time.
func (b *bare) awaitEnd(limit time.Duration) bool {
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case <-b.dead:
		<-b.exited
		return true
	case <-patience.C:
		return false
	}
}

// dial connects to the socket of a handshake.
func (b *bare) dial(socket string) error {
	conn, err := grpc.NewClient("unix://"+socket, append(wire.DialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	b.conn = conn
	return err
}

// end kills the plugin and all that it started, if it is there, and clears up.
func (b *bare) end() {
	if b.conn != nil {
		_ = b.conn.Close()
	}
	_ = syscall.Kill(-b.cmd.Process.Pid, syscall.SIGKILL)
	_ = b.stdin.Close()
	<-b.exited
	process.KillStrays(b.dir)
	_ = os.RemoveAll(b.dir)
}

// handshake waits for the line and takes it apart. What stands before it has a case of its own.
func (b *bare) handshake(ctx context.Context) (socket string, err error) {
	select {
	case line, printed := <-b.line:
		if !printed {
			b.awaitEnd(time.Second)
			return "", fmt.Errorf("its stdout ended without a handshake such as %q; on stdout it said %q, on stderr %q", b.wanted(), b.said(&b.stdout), b.said(&b.stderr))
		}
		return b.checkHandshake(line)
	case <-ctx.Done():
		return "", fmt.Errorf("it printed no handshake such as %q within %s; on stdout it said %q, on stderr %q", b.wanted(), startLimit, b.said(&b.stdout), b.said(&b.stderr))
	}
}

// wanted is what a handshake looks like.
func (b *bare) wanted() string {
	return fmt.Sprintf("1|%d|unix|%s/NAME|grpc|", wire.ProtocolVersion, b.dir)
}

// takes notes the version that the plugin chose, if it is one that was offered.
func (b *bare) takes(version string) bool {
	n, err := strconv.Atoi(version)
	if err != nil {
		return false
	}
	spoken, known := wire.Versions[n]
	b.spoken = spoken
	return known
}

func (b *bare) checkHandshake(line string) (socket string, err error) {
	parts := strings.Split(line, "|")
	switch {
	case parts[0] != "1":
		return "", fmt.Errorf("its handshake is %q; it has to be %q", line, b.wanted())
	case !b.takes(parts[1]):
		return "", fmt.Errorf("it takes protocol %s where the host offers %s (PLUGIN_PROTOCOL_VERSIONS)", parts[1], offered())
	case parts[2] != "unix" || parts[4] != "grpc":
		return "", fmt.Errorf("it offers %s on %s, and not grpc on a unix socket", parts[4], parts[2])
	case filepath.Dir(parts[3]) != b.dir && filepath.Dir(filepath.Dir(parts[3])) != b.dir:
		return "", fmt.Errorf("its socket %s is not in $PLUGIN_UNIX_SOCKET_DIR, %s", parts[3], b.dir)
	}
	info, err := os.Stat(parts[3])
	if err != nil || info.Mode()&os.ModeSocket == 0 {
		return "", fmt.Errorf("there is no socket at %s, which the handshake names", parts[3])
	}
	return parts[3], nil
}
