//go:build unix

package process

import (
	"context"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// Process is a supervised plugin; see the package. Its methods may be called at any time from many goroutines.
type Process struct {
	spec   Spec
	timing timing
	ownDir *RunDir // when Spec gave none
	log    hclog.Logger

	told  told          // the supervisor's own
	retry chan struct{} // one place: end the wait for the next launch
	first chan struct{} // closed after the first launch

	mu          sync.Mutex
	status      Status
	present     *child          // takes calls
	gone        context.Context // ends with present
	held        *child          // present, or being stopped
	killed      bool            // by Kill: nothing is finished any more
	description *ports.Description
	outcome     error              // of the first launch, once first is closed
	cancel      context.CancelFunc // of the supervisor; nil before Start
	stopping    context.Context    // what Stop was given
	finished    chan struct{}
	blame       string // why Restart was asked for
}

// New makes a Process; nothing runs before Start.
func New(spec Spec) (*Process, error) {
	for field, text := range map[string]string{"Name": spec.Name, "Path": spec.Path} {
		if text == "" {
			return nil, ports.InField(ports.Invalid, field, "is missing")
		}
	}
	if spec.Logger == nil {
		spec.Logger = hclog.NewNullLogger()
	}
	p := &Process{spec: spec, timing: usual, log: spec.Logger, retry: make(chan struct{}, 1), first: make(chan struct{}), status: Status{State: Stopped, Since: time.Now()}}
	if spec.MaxWait > 0 {
		p.timing.limit = spec.MaxWait
	}
	return p, nil
}

// Start begins to launch the plugin, and launches it again whenever it dies, until Stop. It waits for nothing; Status tells how
// it goes. Start is called once.
func (p *Process) Start() {
	supervised, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.cancel, p.finished = cancel, make(chan struct{})
	p.mu.Unlock()
	go p.supervise(supervised)
}

// Await waits for the first launch. The error says why the plugin does not run then; a permanent one, that it cannot run as
// it is. It is tried again all the same.
func (p *Process) Await(ctx context.Context) error {
	select {
	case <-p.first:
		return ports.Wrap(ports.Internal, "start "+p.spec.Name, p.outcome)
	case <-ctx.Done():
		return ports.Wrap(ports.CodeOf(ctx.Err()), "start "+p.spec.Name, ctx.Err())
	}
}

// Stop ends supervision and the child: it may finish what it began, and is killed when it takes longer than a few seconds,
// or than ctx allows. It returns when the child is gone.
func (p *Process) Stop(ctx context.Context) error {
	p.mu.Lock()
	cancel, finished := p.cancel, p.finished
	if p.stopping == nil {
		p.stopping = ctx
	}
	p.mu.Unlock()
	if cancel == nil {
		return nil
	}
	cancel()
	<-finished // each step in it has a limit
	return nil
}

// Close is Stop with nothing but the usual limits.
func (p *Process) Close() error { return p.Stop(context.Background()) }

// Kill ends supervision and the child with its whole process group at once, whatever it had begun. It returns when they are
// gone. A Stop afterwards, or one that is under way, has nothing left to do.
func (p *Process) Kill() {
	p.mu.Lock()
	p.killed = true
	cancel, finished, c := p.cancel, p.finished, p.held
	p.mu.Unlock()
	if cancel == nil {
		return
	}
	cancel() // which also kills what is being launched
	if c != nil {
		c.program.kill()
	}
	<-finished
}

// Retry ends the wait for the next launch, for example after something was assigned or installed anew.
func (p *Process) Retry() {
	select {
	case p.retry <- struct{}{}:
	default:
	}
}

// Restart kills the present child, if there is one, for a reason that its health checks do not show. The supervisor starts
// the next one.
func (p *Process) Restart(reason string) {
	p.mu.Lock()
	c := p.present
	if c != nil {
		p.blame = reason
	}
	p.mu.Unlock()
	if c != nil {
		c.program.kill()
	}
}

// Status tells what the Process is doing.
func (p *Process) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// change moves the status and tells about it.
func (p *Process) change(edit func(*Status)) {
	p.mu.Lock()
	before := p.status.State
	edit(&p.status)
	if p.status.State != before {
		p.status.Since = time.Now()
	}
	now := p.status
	p.mu.Unlock()
	if p.spec.Notify != nil {
		p.spec.Notify(now)
	}
}

// child gives the present child and a context that ends with it, or the error of a call that has none. The caller says
// calls.Done when it needs the child no more.
func (p *Process) child() (*child, context.Context, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.present != nil {
		p.present.calls.Add(1)
		return p.present, p.gone, nil
	}
	why := "is " + string(p.status.State)
	if p.status.Detail != "" {
		why += ": " + p.status.Detail
	}
	return nil, nil, ports.Errorf(ports.BackendGone, p.spec.Name, "the plugin %s", why)
}
