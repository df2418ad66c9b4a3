package core

import (
	"context"
	"time"

	"holdfast/ports"
)

// Adopt takes what a backend has, and the local store has not or not so, into the local store: each record goes through the
// Door and the journal as one that is sent again, its item first. So the decision table holds, nothing newer is overwritten,
// and every follower gets it in its turn.
func (h *Host) Adopt(ctx context.Context, backend string, tell func(Progress)) (Adopted, error) {
	const op = "adopt"
	if h.isLocal(backend) {
		return Adopted{}, ports.Errorf(ports.Invalid, op, "%s is the local store itself; name another backend", backend)
	}
	if err := h.localReady(op); err != nil {
		return Adopted{}, err
	}
	from, err := h.side(ctx, op, backend)
	if err != nil {
		return Adopted{}, err
	}
	local, err := h.side(ctx, op, routeLocal)
	if err != nil {
		return Adopted{}, err
	}
	families, err := common(op, from, local)
	if err != nil {
		return Adopted{}, err
	}
	for _, f := range families {
		if mark, _, err := h.state.Follower(from.name, f); err != nil {
			return Adopted{}, ports.Wrap(ports.Internal, op, err)
		} else if mark.Doubtful {
			return Adopted{}, ports.Errorf(ports.Conflict, op,
				"%s may hold records of the family %s that were removed; run `holdfast verify` or `holdfast resync %s --exact` first", from.name, f, from.name)
		}
	}
	end, err := h.repairs.begin(op, local.name)
	if err != nil {
		return Adopted{}, err
	}
	defer end()
	a := &adoption{Host: h, from: from, local: local, teller: newTeller(tell), out: Adopted{Backend: from.name}}
	for _, f := range families {
		a.teller.enter(f)
		err := from.walk(ctx, f, nil, func(rows []ports.Row, _ *ports.Cursor) error { return a.piece(ctx, f, rows) })
		if err == nil {
			err = a.await(ctx, 0)
		}
		if err != nil {
			a.abandon()
			return a.out, interrupted(ctx, op, "what was taken stays; run it again for the rest", err)
		}
	}
	a.teller.end()
	return a.out, nil
}

// adoption is one Adopt.
type adoption struct {
	*Host
	from, local *side
	teller      *teller
	out         Adopted

	last   keySheet // what the local store had of the key that the last piece ended in
	flying []*Promise
	costs  []int64
	bytes  int64
}

// What may be on its way to the local store at a time.
const (
	maxFlying      = 256
	maxFlyingBytes = 32 << 20
)

// piece takes the records of one piece of the walk in.
func (a *adoption) piece(ctx context.Context, f ports.Family, rows []ports.Row) error {
	for i := range rows {
		row := &rows[i]
		if a.last.rows == nil || row.Key != a.last.key {
			there, err := a.local.sheet(ctx, f, row.Key)
			if err != nil {
				return err
			}
			a.last = keySheet{row.Key, there}
		}
		a.out.Looked++
		a.teller.add(1, 0)
		if there, ok := a.last.rows[idOf(row)]; ok && there.body == imprintOf(row).body {
			a.out.Equal++
			continue
		}
		if err := a.take(ctx, row); err != nil {
			return err
		}
	}
	return nil
}

// take sends one record through the Door. A journal without room is waited for.
func (a *adoption) take(ctx context.Context, row *ports.Row) error {
	cost := int64(len(row.Body))
	if err := a.await(ctx, cost); err != nil {
		return err
	}
	call := sentAgain(row, a.from.name)
	for pause := firstPause; ; pause = min(pause*2, lastPause) {
		p := a.begin(call, true)
		if p.answer == nil || p.answer.Situation != Unavailable {
			a.flying, a.costs, a.bytes = append(a.flying, p), append(a.costs, cost), a.bytes+cost
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sentAgain is the call that sends a backend's record again.
func sentAgain(row *ports.Row, backend string) Call {
	action := map[ports.Kind]ports.Action{
		ports.KindItem: ports.UpsertWorkItem, ports.KindEvent: ports.AppendEvent, ports.KindAttempt: ports.InsertAttempt, ports.KindManifest: ports.UpsertManifest,
	}[row.Kind]
	body := row.Body
	if r, err := recordOf(row); err == nil {
		body = r.JSON()
	}
	settings := append(ports.AppendQuoted([]byte("{"), recordMember(action)), ':')
	settings = append(append(settings, body...), '}')
	return Call{Action: action, Settings: settings, Source: Source{Actor: "adopt:" + backend, Origin: ports.OriginImport, Import: true}}
}

// await waits for decisions, oldest first, until there is room for a record of some size; for all of them with 0.
func (a *adoption) await(ctx context.Context, cost int64) error {
	for len(a.flying) > 0 && (cost == 0 || len(a.flying) >= maxFlying || a.bytes+cost > maxFlyingBytes) {
		answer, err := a.flying[0].settled(ctx)
		if err != nil {
			return err
		}
		a.bytes -= a.costs[0]
		a.flying, a.costs = a.flying[1:], a.costs[1:]
		switch answer.Situation {
		case Done, AlreadyPresent:
			a.out.Taken++
			a.teller.add(0, 1)
		case Expired:
			a.out.Expired++
		case Ignored:
			a.out.Ignored++
		default:
			a.out.Refused++
			a.log.Debug("a record was not adopted", "backend", a.from.name, "answer", answer.Err)
		}
	}
	return nil
}

// abandon forgets those whose decision nobody waits for any more; they are durable and will be decided.
func (a *adoption) abandon() {
	for _, p := range a.flying {
		if p.waiter != nil {
			p.family.forget(p.seq)
		}
	}
}

// settled waits for the decision itself, however long the local store is away.
func (p *Promise) settled(ctx context.Context) (Answer, error) {
	if p.answer != nil {
		return *p.answer, nil
	}
	if err := p.receipt.Wait(ctx); err != nil {
		return Answer{}, ports.Wrap(ports.Unavailable, "journal", err)
	}
	select {
	case <-p.waiter.done:
		return p.decision(), nil
	case <-ctx.Done():
		return Answer{}, ctx.Err()
	}
}
