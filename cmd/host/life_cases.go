package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/emptypb"

	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/plugins/conformance"
	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// The limits of a plugin's life. The host waits longer than it says in the contract in one case only: never.
const (
	startLimit = 10 * time.Second        // from the start to the handshake
	stopLimit  = 2500 * time.Millisecond // after Shutdown; then the host kills
	loneLimit  = 3 * time.Second         // after the end of stdin; nobody is there to kill
	signalTime = 500 * time.Millisecond  // in which signals would have had their effect
	largeLimit = 30 * time.Second        // for what is allowed to take long
	largeBytes = 71 << 20
)

const lifeTopic = "process"

// life gives the cases about a plugin's process, which no port shows.
func life(spec *process.Spec, options []byte) []conformance.Case {
	s := &lifeSubject{spec: spec, options: options}
	rules := []struct {
		name, must string
		run        func(c *conformance.C)
	}{
		{"by-hand", "started without the cookie it says on stderr that it is a plugin of holdfast, and exits with 1", s.byHand},
		{"handshake", "the first line on stdout is the handshake, which names a unix socket in the folder that was given", s.handshake},
		{"in-time", "it answers Describe within 10 seconds of its start", s.inTime},
		{"health", "grpc.health.v1.Health answers SERVING for the service \"plugin\"", s.health},
		{"large-message", "it takes a message of 71 MiB", s.largeMessage},
		{"signals", "it ignores SIGINT and SIGTERM: the host says when to stop", s.signals},
		{"host-gone", "it exits when its standard input ends", s.hostGone},
		{"stop", "it exits with 0 after Drain and Shutdown of plugin.GRPCController", s.stop},
		{"children", "it leaves no process behind when it is stopped", s.children},
		{"tidy", "after a stop in order its socket is gone", s.tidy},
	}
	cases := make([]conformance.Case, len(rules))
	for i, r := range rules {
		cases[i] = conformance.Case{Topic: lifeTopic, Name: r.name, Must: r.must, Run: r.run}
	}
	return cases
}

type lifeSubject struct {
	spec    *process.Spec
	options []byte
}

// start begins a plugin as a host does and connects to it.
func (s *lifeSubject) start(c *conformance.C) (b *bare, client wire.Remote) {
	b = s.plain(c, true)
	ctx, cancel := context.WithTimeout(c.Ctx, startLimit)
	defer cancel()
	socket, err := b.handshake(ctx)
	if err == nil {
		err = b.dial(socket)
	}
	if err != nil {
		b.end()
		c.Fatalf("%v", err)
	}
	return b, b.spoken.Call(b.conn)
}

func (s *lifeSubject) plain(c *conformance.C, cookie bool) *bare {
	b, err := startBare(s.spec, cookie)
	if err != nil {
		c.Fatalf("%v", err)
	}
	return b
}

func (s *lifeSubject) byHand(c *conformance.C) {
	b := s.plain(c, false)
	defer b.end()
	if !b.awaitEnd(startLimit) {
		c.Fatalf("it still runs after %s", startLimit)
	}
	if code := b.state.ExitCode(); code != 1 {
		c.Errorf("it exited with %d", code)
	}
	if said := b.said(&b.stderr); !strings.Contains(strings.ToLower(said), "holdfast") {
		c.Errorf("on stderr it says nothing of holdfast, but %q", said)
	}
	if line, printed := <-b.line; printed {
		c.Errorf("it printed a handshake: %q", line)
	}
}

func (s *lifeSubject) handshake(c *conformance.C) {
	b, _ := s.start(c)
	defer b.end()
	if first, _, _ := strings.Cut(b.said(&b.stdout), "\n"); !looksLikeHandshake(first) {
		c.Errorf("the first line on stdout is %q and not a handshake such as %q; logs go to stderr", first, b.wanted())
	}
}

func (s *lifeSubject) inTime(c *conformance.C) {
	began := time.Now()
	b, client := s.start(c)
	defer b.end()
	ctx, cancel := context.WithTimeout(c.Ctx, startLimit)
	defer cancel()
	if _, err := client.Describe(ctx); err != nil {
		c.Errorf("describe: %v", err)
	}
	if took := time.Since(began); took > startLimit {
		c.Errorf("it took %s", took.Round(10*time.Millisecond))
	}
}

func (s *lifeSubject) health(c *conformance.C) {
	b, _ := s.start(c)
	defer b.end()
	if err := b.serving(c.Ctx); err != nil {
		c.Errorf("%v", err)
	}
}

// serving asks the health service once.
func (b *bare) serving(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(b.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: "plugin"})
	if err == nil && answer.Status != grpc_health_v1.HealthCheckResponse_SERVING {
		err = ports.Errorf(ports.Internal, "health", "it answers %s", answer.Status)
	}
	return err
}

// largeMessage sends a Describe with a member that no plugin knows, so that only the size of the message is tried.
func (s *lifeSubject) largeMessage(c *conformance.C) {
	b, _ := s.start(c)
	defer b.end()
	ctx, cancel := context.WithTimeout(c.Ctx, largeLimit)
	defer cancel()
	request := &pb.DescribeRequest{}
	unknown := protowire.AppendTag(nil, 2000, protowire.BytesType)
	request.ProtoReflect().SetUnknown(protowire.AppendBytes(unknown, make([]byte, largeBytes)))
	if _, err := pb.NewBackendClient(b.conn).Describe(ctx, request); err != nil {
		c.Errorf("describe: %v; raise the limit of the messages that the server receives to 72 MiB", err)
	}
}

func (s *lifeSubject) signals(c *conformance.C) {
	b, client := s.start(c)
	defer b.end()
	if _, err := client.Describe(c.Ctx); err != nil {
		c.Fatalf("describe: %v", err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if err := syscall.Kill(b.cmd.Process.Pid, signal); err != nil {
			c.Fatalf("%v", err)
		}
	}
	if b.awaitEnd(signalTime) {
		c.Fatalf("it ended: %s", b.state)
	}
	if err := b.serving(c.Ctx); err != nil {
		c.Errorf("it does not answer any more: %v", err)
	}
}

func (s *lifeSubject) hostGone(c *conformance.C) {
	b, _ := s.start(c)
	defer b.end()
	_ = b.stdin.Close()
	if !b.awaitEnd(loneLimit) {
		c.Errorf("it still runs %s later", loneLimit)
	}
}

func (s *lifeSubject) stop(c *conformance.C) {
	b := s.stopped(c)
	defer b.end()
	if code := b.state.ExitCode(); code != 0 {
		c.Errorf("it ended with %s", b.state)
	}
}

func (s *lifeSubject) children(c *conformance.C) {
	b := s.stopped(c)
	defer b.end()
	if left := process.KillStrays(b.dir); len(left) > 0 {
		c.Errorf("a process that it started outlives it: %s", strings.Join(left, ", "))
	}
}

func (s *lifeSubject) tidy(c *conformance.C) {
	b := s.stopped(c)
	defer b.end()
	left, err := filepath.Glob(filepath.Join(b.dir, "*"))
	if err != nil || len(left) > 0 {
		c.Errorf("it left %v", left)
	}
}

// stopped starts a plugin, has it work and stops it in order.
func (s *lifeSubject) stopped(c *conformance.C) *bare {
	b, client := s.start(c)
	fatal := func(format string, args ...any) {
		b.end()
		c.Fatalf(format, args...)
	}
	dir, err := os.MkdirTemp("", "hf-suite-")
	if err != nil {
		fatal("%v", err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(c.Ctx, startLimit)
	defer cancel()
	options := bytes.ReplaceAll(s.options, []byte("{case}"), []byte("process"))
	if err := client.Configure(ctx, ports.Configuration{Name: "conformance", DataDir: dir, Options: options}); err != nil {
		fatal("configure: %v", err)
	}
	if err := client.Drain(ctx); err != nil && ports.CodeOf(err) != ports.Unimplemented {
		fatal("drain: %v", err)
	}
	// The answer may be lost with the plugin.
	if err := b.conn.Invoke(ctx, "/plugin.GRPCController/Shutdown", &emptypb.Empty{}, &emptypb.Empty{}); status.Code(err) == codes.Unimplemented {
		fatal("shutdown: %v", err)
	}
	if !b.awaitEnd(stopLimit) {
		fatal("it still runs %s after Shutdown", stopLimit)
	}
	return b
}
