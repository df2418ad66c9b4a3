//go:build unix

package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// launch starts a child and makes it ready: handshake, connection, Describe, Configure. Nothing of a launch that fails is
// left behind. slow is told of a step that takes longer than a health check may.
func launch(ctx context.Context, spec *Spec, log hclog.Logger, t *timing, slow func(step)) (*child, error) {
	c, err := begin(ctx, spec, log, t, slow)
	if err != nil {
		return nil, err
	}
	defer t.patient(configuring, slow)()
	if err := c.configure(ctx, spec, t); err != nil {
		c.discard(t)
		return nil, err
	}
	return c, nil
}

// begin starts a child and asks what it is.
func begin(ctx context.Context, spec *Spec, log hclog.Logger, t *timing, slow func(step)) (*child, error) {
	path, err := findExecutable(spec.Path)
	if err != nil {
		return nil, err
	}
	if err := checkSocketRoom(spec.RunDir); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, t.start)
	defer cancel()
	files, err := spec.inspect()
	if err != nil {
		return nil, err
	}
	p := newProgram(path, spec, files, log)
	stopAbort := context.AfterFunc(ctx, p.kill)
	defer stopAbort()

	c := &child{program: p, log: log, started: time.Now(), doubts: make(chan struct{}, 1)}
	at, quick := handshaking, t.patient(handshaking, slow)
	err = c.connect(spec)
	quick()
	if err == nil {
		at = describing
		defer t.patient(describing, slow)()
		c.description, err = c.client.Describe(ctx)
	}
	if err == nil {
		err = checkKind(spec, path, c.description)
		if err != nil {
			c.discard(t)
			return nil, err
		}
		return c, nil
	}
	var start *startError
	if errors.As(err, &start) && ctx.Err() == nil {
		c.discard(t)
		return nil, explainStart(path, start.cause)
	}
	c.settle(ctx)
	err = explainLaunch(ctx, p, at, t.start, err)
	c.discard(t)
	return nil, err
}

// patient tells slow about a step, unless the function that it gives is called first.
func (t *timing) patient(at step, slow func(step)) (done func()) {
	timer := time.AfterFunc(t.check, func() { slow(at) })
	return func() { timer.Stop() }
}

// inspect holds the files of a plugin against what the spec asks of them.
func (s *Spec) inspect() (pinned, error) {
	files, err := s.Files()
	if err != nil {
		return nil, err
	}
	if err := CheckKeepers(files, s.Strict); err != nil {
		return nil, err
	}
	return checkSums(s, files)
}

// maxName is how long a plugin's kind and version may be; they stand in logs and errors.
const maxName = 100

func checkKind(spec *Spec, path string, d ports.Description) error {
	if longest := max(len(d.Kind), len(d.Version)); longest > maxName {
		return unusable(path, "describes itself with a kind or a version of %d bytes, the limit is %d; shorten it", longest, maxName)
	}
	if spec.Kind != "" && d.Kind != spec.Kind {
		return unusable(path, "is a plugin of the kind %q, not %q; name another plugin, or write backend %q", d.Kind, spec.Kind, d.Kind)
	}
	return nil
}

// connect starts the program through go-plugin and takes the connection. A go-plugin client is good for one start.
func (c *child) connect(spec *Spec) error {
	offered := map[int]plugin.PluginSet{}
	for number, version := range spec.spoken() {
		offered[number] = plugin.PluginSet{wire.PluginName: taken{call: version.Call}}
	}
	c.host = plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig:  cookie,
		VersionedPlugins: offered,
		RunnerFunc:       c.makeRunner,
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		SkipHostEnv:      true,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: spec.RunDir},
		GRPCDialOptions:  slices.Concat(spec.Trace.DialOptions(), wire.DialOptions(), []grpc.DialOption{grpc.WithChainStreamInterceptor(withoutBroker)}),
		Logger:           quiet{c.log.Named("go-plugin")},
		SyncStdout:       &lines{emit: c.program.words.take},
		SyncStderr:       &lines{emit: c.program.words.take},
		StartTimeout:     time.Hour, // launch has a limit of its own, which ends the program
	})
	protocol, err := c.host.Client()
	if err != nil {
		return err
	}
	raw, err := protocol.Dispense(wire.PluginName)
	if err != nil {
		return err
	}
	link := raw.(*link)
	c.conn, c.client = link.conn, link.client
	return nil
}

// withoutBroker keeps go-plugin from opening the stream of its broker, over which a plugin could have it keep as much as it
// likes.
func withoutBroker(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	if strings.HasPrefix(method, "/plugin.GRPCBroker/") {
		return nil, ports.Errorf(ports.Unimplemented, "launch", "a host uses no broker")
	}
	return open(ctx, desc, conn, method, opts...)
}

// taken is what go-plugin dispenses: a link, in the version that was agreed on.
type taken struct {
	plugin.NetRPCUnsupportedPlugin

	call func(grpc.ClientConnInterface) wire.Remote
}

// link is a connection and the backend behind it.
type link struct {
	conn   *grpc.ClientConn
	client wire.Remote
}

func (t taken) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return &link{conn: conn, client: t.call(conn)}, nil
}

// GRPCServer is the plugin's side of the same interface.
func (taken) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return ports.Errorf(ports.Unimplemented, "launch", "a host serves no backend")
}

func (c *child) configure(ctx context.Context, spec *Spec, t *timing) error {
	limited, cancel := context.WithTimeout(ctx, t.configure)
	defer cancel()
	config := spec.Config
	if spec.Options != nil {
		options, err := spec.Options(c.description)
		if err != nil {
			return err
		}
		config.Options = options
	}
	if err := c.client.Configure(limited, config); err != nil {
		if code := ports.CodeOf(err); code == ports.BackendGone || code == ports.Deadline {
			c.settle(limited)
			return explainLaunch(limited, c.program, configuring, t.configure, err)
		}
		op := "configure"
		if spec.Place != nil {
			if place := spec.Place(ports.AsError(err).Field); place != "" {
				op = place + ": " + op
			}
		}
		return ports.Wrap(ports.Internal, op, err)
	}
	return nil
}

// Describe starts a plugin, asks what it is and stops it again. The spec needs no Name, no Kind and no RunDir for that.
func Describe(ctx context.Context, spec Spec) (ports.Description, error) {
	dir, err := OpenRunDir("")
	if err != nil {
		return ports.Description{}, err
	}
	defer dir.Close()
	if spec.Logger == nil {
		spec.Logger = hclog.NewNullLogger()
	}
	spec.RunDir = dir.Path()
	t := usual
	c, err := begin(ctx, &spec, spec.Logger.Named(filepath.Base(spec.Path)), &t, func(step) {})
	if err != nil {
		return ports.Description{}, err
	}
	defer c.stop(ctx, &t)
	return c.description, nil
}

// startError is an error of the system while a file was to be started.
type startError struct{ cause error }

func (e *startError) Error() string { return e.cause.Error() }
func (e *startError) Unwrap() error { return e.cause }

// removeSocketDir is for the launches that go-plugin does not clean up after.
func (c *child) removeSocketDir() {
	if c.socketDir != "" {
		_ = os.RemoveAll(c.socketDir)
	}
}
