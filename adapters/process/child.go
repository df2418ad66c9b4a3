//go:build unix

package process

import (
	"context"
	"os/exec"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health/grpc_health_v1"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// child is one run of a plugin that can be called. It is used once: after its death its connection is never tried again.
type child struct {
	program     *program
	host        *plugin.Client
	conn        *grpc.ClientConn
	client      wire.Remote
	description ports.Description
	started     time.Time
	socketDir   string
	doubts      chan struct{}  // one place: a call had no answer in time
	calls       sync.WaitGroup // that are under way; none is added once it is not the present child
	log         hclog.Logger
}

func (c *child) makeRunner(log hclog.Logger, cmd *exec.Cmd, socketDir string) (runner.Runner, error) {
	c.socketDir, c.program.out.folder = socketDir, socketDir
	return runnerOf(c.program, c.program.words.log.log.GetLevel())(log, cmd, socketDir)
}

func (c *child) pid() int {
	c.program.mu.Lock()
	defer c.program.mu.Unlock()
	return c.program.pid
}

// answers asks the health service, which every plugin has, whether the process does anything at all. Whether it can take a
// write is another question (Probe).
func (c *child) answers(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	answer, err := grpc_health_v1.NewHealthClient(c.conn).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: plugin.GRPCServiceName})
	return err == nil && answer.Status == grpc_health_v1.HealthCheckResponse_SERVING
}

// doubt asks for a health check soon.
func (c *child) doubt() {
	select {
	case c.doubts <- struct{}{}:
	default:
	}
}

// watch returns when the child has died, was found hung and killed (the error says which), or ctx ends (nil). silent is told
// how long no health check was answered. A call without an answer brings the next check forward.
func (c *child) watch(ctx context.Context, t *timing, silent func(time.Duration)) error {
	ticker := time.NewTicker(t.check)
	defer ticker.Stop()
	last, hurried := time.Now(), false
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.program.exited:
			return c.obituary()
		case <-c.doubts:
			if !hurried {
				ticker.Reset(t.check / 4)
				hurried = true
			}
			continue
		case <-ticker.C:
		}
		if hurried {
			ticker.Reset(t.check)
			hurried = false
		}
		if c.answers(ctx, t.answer) {
			last = time.Now()
			silent(0)
			continue
		}
		silence := time.Since(last)
		if silence < t.silence || ctx.Err() != nil {
			silent(silence)
			continue
		}
		c.program.kill()
		return &obituary{
			brief: ports.Errorf(ports.BackendGone, "", "the plugin hung: it answered no health check for %s and was killed", silence.Round(100*time.Millisecond)),
			words: c.program.words.said(),
		}
	}
}

func (c *child) obituary() error {
	return &obituary{
		brief: ports.Errorf(ports.BackendGone, "", "the plugin %s", c.program.ending()),
		words: c.program.words.said(),
	}
}
