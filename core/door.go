package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// patience is how long a caller waits for its answer, from the moment its call came in.
const patience = 2 * time.Second

// Promise is a call that was taken in. Wait may be called once.
type Promise struct {
	host    *Host
	family  *family
	began   time.Time
	class   ports.Class
	seq     uint64
	receipt ports.Receipt
	waiter  *waiter
	read    func(ctx context.Context) Answer
	answer  *Answer // known already
}

// Begin takes a call in: a write is checked, stamped and given its place in the journal, in the order of calls. A read is
// carried out by Wait, after the writes that were answered before it.
func (h *Host) Begin(call Call) *Promise { return h.begin(call, h.ack == AckLocal) }

// begin is Begin; awaited says whether Wait gives the decision of a write.
func (h *Host) begin(call Call, awaited bool) *Promise {
	p := &Promise{host: h, began: time.Now()}
	if !call.Action.IsWrite() {
		p.read = func(ctx context.Context) Answer { return h.readAction(ctx, &call) }
		return p
	}
	f := h.families[call.Action.Family()]
	c, err := check(&call)
	if err != nil {
		f.counts.refused.Add(1)
		return p.with(quiet(c.entry.Class, refusal(err)))
	}
	if h.exempt.ignores(&c) {
		f.counts.ignored.Add(1)
		return p.with(Answer{Situation: Ignored})
	}
	c.stampGUID(&call.Source)
	c.entry.Host = h.shortID()
	p.family, p.class = f, c.entry.Class
	p.receipt, p.waiter, p.seq, err = f.append(c.entry, h.clock(), awaited)
	if ports.CodeOf(err) == ports.Full && h.makeRoom(f) {
		p.receipt, p.waiter, p.seq, err = f.append(c.entry, h.clock(), awaited)
	}
	if err != nil {
		return p.with(refusal(err))
	}
	f.counts.accepted.Add(1)
	return p
}

// Do takes a call in and waits for its answer.
func (h *Host) Do(ctx context.Context, call Call) Answer { return h.Begin(call).Wait(ctx) }

// Refusal is the answer to a call that could not even be parsed.
func Refusal(err error) Answer { return refusal(err) }

func (p *Promise) with(a Answer) *Promise {
	p.answer = &a
	return p
}

// Wait gives the answer, at most about two seconds after Begin.
func (p *Promise) Wait(ctx context.Context) Answer {
	switch {
	case p.answer != nil:
		return *p.answer
	case p.read != nil:
		return p.read(ctx)
	}
	if p.waiter != nil {
		select {
		case <-p.waiter.done: // only what is durable is ever decided
			return p.decision()
		default:
		}
	}
	ctx, cancel := context.WithDeadline(ctx, p.began.Add(patience))
	defer cancel()
	if err := p.receipt.Wait(ctx); err != nil {
		p.family.forget(p.seq)
		a := refusal(ports.Wrap(ports.Unavailable, "journal", err))
		a.Situation = Unavailable
		return a
	}
	if p.waiter == nil {
		return p.deferred()
	}
	select {
	case <-p.waiter.done:
	case <-p.host.link.down():
		return p.giveUp()
	case <-ctx.Done():
		return p.giveUp()
	}
	return p.decision()
}

// ended is a context that is over: who waits with it only looks.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// Due says whether Wait gives the answer at once.
func (p *Promise) Due() bool {
	switch {
	case p.answer != nil:
		return true
	case p.read != nil:
		return false
	case p.waiter != nil:
		select {
		case <-p.waiter.done:
			return true
		case <-p.host.link.down(): // nobody waits for a decision; it only has to be durable
		default:
			return false
		}
	}
	return p.receipt.Wait(ended) == nil
}

// giveUp answers without a decision, unless it came in the same moment.
func (p *Promise) giveUp() Answer {
	if p.family.forget(p.seq) {
		return p.deferred()
	}
	<-p.waiter.done
	return p.decision()
}

func (p *Promise) deferred() Answer {
	p.family.counts.deferred.Add(1)
	return Answer{Situation: Deferred, Seq: p.seq}
}

func (p *Promise) decision() Answer {
	a := decided(p.class, p.waiter.decision)
	switch {
	case p.waiter.aside && p.class == ports.Reflush:
		a.Situation = RefusedQuietly
	case p.waiter.aside:
		a.Situation = SetAside
	}
	a.Seq, a.Backend = p.seq, p.host.link.name
	return a
}

// decided is the answer to a decision of the local store.
func decided(class ports.Class, d ports.Decision) Answer {
	switch d.Outcome {
	case ports.AlreadyPresent:
		return Answer{Situation: AlreadyPresent}
	case ports.AlreadyAbsent:
		return Answer{Situation: AlreadyAbsent}
	case ports.Missing:
		return Answer{Situation: NotFound}
	case ports.Expired:
		return Answer{Situation: Expired}
	case ports.Late:
		return Answer{Situation: Late}
	case ports.Early:
		return Answer{Situation: Early}
	case ports.Refused:
		why := d.Err
		if why == nil {
			why = ports.Errorf(ports.Internal, "local store", "it was refused without a reason")
		}
		return quiet(class, refusal(why))
	}
	return Answer{Situation: Done}
}

// quiet keeps a hub's sweep going: what it sends again is never answered as a failure that it would stop at.
func quiet(class ports.Class, a Answer) Answer {
	if class == ports.Reflush && a.Situation == Refused {
		a.Situation = RefusedQuietly
	}
	return a
}
