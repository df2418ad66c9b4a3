package wire

import (
	"context"
	"sync"

	"holdfast/ports"
)

// gate counts the work that is under way, and after shut lets no more in.
type gate struct {
	mu      sync.Mutex
	shut    bool
	inside  int
	emptied chan struct{} // made by shutAndWait, closed when the last one leaves
}

// enter lets a call in, unless the gate was shut. Whoever is in must leave.
func (g *gate) enter() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return ports.Errorf(ports.Unavailable, "", "the plugin is stopping and takes no more work")
	}
	g.inside++
	return nil
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inside--
	if g.inside == 0 && g.emptied != nil {
		close(g.emptied)
		g.emptied = nil
	}
}

// shutAndWait shuts the gate and waits until all are out.
func (g *gate) shutAndWait(ctx context.Context) error {
	g.mu.Lock()
	g.shut = true
	if g.inside == 0 {
		g.mu.Unlock()
		return nil
	}
	if g.emptied == nil {
		g.emptied = make(chan struct{})
	}
	emptied := g.emptied
	g.mu.Unlock()
	select {
	case <-emptied:
		return nil
	case <-ctx.Done():
		return ports.Wrap(ports.CodeOf(ctx.Err()), "drain", ctx.Err())
	}
}
