package wire

import (
	"context"
	"sync"

	pb "holdfast/plugins/proto/backendv1"
	"holdfast/ports"
)

// commits keeps one ordered stream for each family. A stream that breaks fails every batch without an answer, and the next
// batch opens a new one.
type commits struct {
	rpc    pb.BackendClient
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	streams map[ports.Family]*commitStream
	running sync.WaitGroup
}

// streamQueue is how many batches may wait to be written. The caller keeps its own, smaller window.
const streamQueue = 8

func newCommits(rpc pb.BackendClient) commits {
	ctx, cancel := context.WithCancel(context.Background())
	return commits{rpc: rpc, ctx: ctx, cancel: cancel, streams: map[ports.Family]*commitStream{}}
}

func (c *commits) close() {
	c.mu.Lock()
	c.cancel()
	c.mu.Unlock()
	c.running.Wait()
}

func (c *commits) submit(ctx context.Context, b *ports.CommitBatch) (ports.Pending, error) {
	m, err := batchOut(b)
	if err != nil {
		return nil, err
	}
	s, err := c.stream(b.Family)
	if err != nil {
		return nil, err
	}
	p := &pending{seqs: make([]uint64, len(b.Entries)), message: m, done: make(chan struct{})}
	for i := range b.Entries {
		p.seqs[i] = b.Entries[i].Seq
	}
	select {
	case s.queue <- p:
		select {
		case <-s.ended: // perhaps nobody looks into the queue any more
			s.abandon()
		default:
		}
		return p, nil
	case <-s.ended:
		return nil, ports.Errorf(ports.BackendGone, "commit", "the stream to the plugin broke")
	case <-ctx.Done():
		return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "commit", ctx.Err())
	}
}

// renew leaves the streams, with whatever hangs in them: answers come in order, so a batch without one would hold up all that
// come behind it.
func (c *commits) renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.streams {
		s.cancel()
	}
	clear(c.streams)
}

// stream gives the family's stream, a new one when the last has ended.
func (c *commits) stream(f ports.Family) (*commitStream, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.streams[f]; s != nil {
		select {
		case <-s.ended:
		default:
			return s, nil
		}
	}
	if c.ctx.Err() != nil {
		return nil, ports.Errorf(ports.BackendGone, "commit", "the connection to the plugin was closed")
	}
	ctx, cancel := context.WithCancel(c.ctx)
	rpc, err := c.rpc.Commit(ctx)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &commitStream{rpc: rpc, cancel: cancel, queue: make(chan *pending, streamQueue), ended: make(chan struct{})}
	c.streams[f] = s
	c.running.Go(s.write)
	c.running.Go(func() {
		defer cancel()
		s.read()
	})
	return s, nil
}

// commitStream is one stream. write and read each have a goroutine, because a write can wait for a plugin that is slow and
// nothing but the end of the stream interrupts it.
type commitStream struct {
	rpc    pb.Backend_CommitClient
	cancel context.CancelFunc
	queue  chan *pending
	ended  chan struct{} // closed by read, after which nobody waits for the stream

	mu   sync.Mutex
	sent []*pending // written or being written, without an answer, oldest first
	last uint64
}

func (s *commitStream) write() {
	for {
		select {
		case p := <-s.queue:
			s.mu.Lock()
			s.last++
			p.id, p.message.Id = s.last, s.last
			s.sent = append(s.sent, p)
			s.mu.Unlock()
			err := s.rpc.Send(p.message)
			p.message = nil
			if err != nil {
				<-s.ended // read knows the reason
				s.abandon()
				return
			}
		case <-s.ended:
			s.abandon()
			return
		}
	}
}

// read hands out the answers until the stream ends, and then the reason to everything that has none.
func (s *commitStream) read() {
	for {
		m, err := s.rpc.Recv()
		if err != nil {
			s.end(err)
			return
		}
		s.mu.Lock()
		var p *pending
		if len(s.sent) > 0 && s.sent[0].id == m.Id {
			p, s.sent = s.sent[0], s.sent[1:]
		}
		s.mu.Unlock()
		if p == nil {
			s.end(ports.Errorf(ports.Internal, "commit", "the plugin answered batch %d out of its order", m.Id))
			return
		}
		if m.Error != nil {
			p.resolve(nil, errorOf(m.Error))
		} else {
			p.resolve(decisionsIn(p.seqs, m.Decisions))
		}
	}
}

// end fails what has no answer. A permanent code would say that nothing of a batch took effect, so it is passed on only
// where that is certain: for the one batch that was under way, or when the plugin has no such call.
func (s *commitStream) end(err error) {
	s.mu.Lock()
	sent := s.sent
	s.sent = nil
	s.mu.Unlock()
	if code := ports.CodeOf(err); code != ports.Unimplemented && code != ports.Unavailable && !(code == ports.TooLarge && len(sent) == 1) {
		err = &ports.Error{Code: ports.BackendGone, Op: "commit", Message: "the stream to the plugin broke: " + err.Error(), Cause: err}
	}
	for _, p := range sent {
		p.resolve(nil, err)
	}
	close(s.ended)
}

// abandon fails what came into the queue while the stream ended. Each batch is taken out by one goroutine, so it may run twice.
func (s *commitStream) abandon() {
	s.mu.Lock()
	left := s.sent
	s.sent = nil
	s.mu.Unlock()
	for {
		select {
		case p := <-s.queue:
			left = append(left, p)
			continue
		default:
		}
		break
	}
	for _, p := range left {
		p.resolve(nil, ports.Errorf(ports.BackendGone, "commit", "the stream to the plugin broke"))
	}
}

// pending is a submitted batch.
type pending struct {
	id      uint64
	seqs    []uint64
	message *pb.CommitRequest // until it is written

	done      chan struct{}
	decisions []ports.Decision
	err       error
}

func (p *pending) resolve(decisions []ports.Decision, err error) {
	p.decisions, p.err = decisions, err
	close(p.done)
}

func (p *pending) Wait(ctx context.Context) ([]ports.Decision, error) {
	select {
	case <-p.done:
		return p.decisions, p.err
	default:
	}
	select {
	case <-p.done:
		return p.decisions, p.err
	case <-ctx.Done():
		return nil, ports.Wrap(ports.CodeOf(ctx.Err()), "commit", ctx.Err())
	}
}
