package core

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// How the host and its local store meet: at every start of either.

// open finds the store and makes it ready for commits.
func (k *link) open(ctx context.Context) (map[ports.Family]ports.Mark, error) {
	standing, plan, err := k.meet(ctx)
	if err != nil {
		return nil, err
	}
	if plan.mends && len(plan.lost) > 0 {
		if err := k.mend(ctx, standing, &plan); err != nil {
			return nil, err
		}
	}
	return k.admit(ctx, standing, plan)
}

// meet finds the store and decides how to go on with it.
func (k *link) meet(ctx context.Context) (standing ports.Standing, plan course, err error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	silent := time.AfterFunc(silentOpen, func() { k.hint("has not said for " + silentOpen.String() + " what it holds") })
	description, err := k.Store.Describe(ctx)
	if err == nil {
		standing, err = k.Store.Stand(ctx, k.hostID)
	}
	silent.Stop()
	if err == nil {
		plan, err = k.decide(standing)
	}
	if err != nil {
		return standing, plan, err
	}
	k.mu.Lock()
	k.choice = plan.choice
	k.mu.Unlock()
	if plan.choice {
		plan.wait += k.history(ctx)
	}
	if plan.wait != "" {
		return standing, plan, &needError{ports.Errorf(ports.Unavailable, "", "%s", plan.wait), plan.remedy}
	}
	if p, _ := k.now(); p == waiting {
		k.enter(opening, "", "")
	}
	k.mu.Lock()
	k.powers = description // a disk too full for what follows can be pruned
	k.mu.Unlock()
	return standing, plan, nil
}

// admit makes the store ready for this start of the host.
func (k *link) admit(ctx context.Context, standing ports.Standing, plan course) (map[ports.Family]ports.Mark, error) {
	ctx, cancel := context.WithTimeout(ctx, openLimit)
	defer cancel()
	if err := k.settleSeqs(standing, plan); err != nil {
		return nil, err
	}
	if k.nonce == "" {
		next := rand.Text()
		if err := k.state.PushNonce(next); err != nil {
			return nil, err
		}
		k.nonce = next
	}
	epochs := map[ports.Family]ports.Epoch{}
	for f, family := range k.families {
		b := family.journal.Bounds()
		epochs[f] = ports.Epoch{ID: b.Epoch, From: b.EpochFrom}
	}
	err := k.Store.Open(ctx, ports.Opening{
		HostID: k.hostID, Nonce: standing.Nonce, Next: k.nonce, Epochs: epochs, Resume: plan.resume, Retention: k.retention,
	})
	if ports.CodeOf(err) == ports.Conflict { // somebody opened it meanwhile: the next meeting tells who
		err = ports.Errorf(ports.Unavailable, "local store", "%v", err)
	}
	if err != nil {
		return nil, err
	}
	if plan.note != "" {
		k.log.Warn(plan.note, "name", k.name)
	}
	marks := map[ports.Family]ports.Mark{}
	for f := range k.families {
		marks[f] = ports.Mark{Epoch: epochs[f].ID, Seq: standing.Marks[f].Seq}
		if seq, moved := plan.resume[f]; moved {
			marks[f] = ports.Mark{Epoch: epochs[f].ID, Seq: seq}
		}
	}
	if f := k.families[ports.Queue]; f != nil {
		f.counts.waiting.Store(uint64(max(standing.Early, 0)))
	}
	k.mu.Lock()
	k.storeID, k.accept = standing.StoreID, notAccepted
	k.mu.Unlock()
	if plan.same {
		k.logOlder(marks)
	}
	return marks, k.state.SetLocal(ports.LocalMark{Name: k.name, StoreID: standing.StoreID, Marks: marks})
}

// logOlder has the log say what an older copy of the store is brought forward by.
func (k *link) logOlder(marks map[ports.Family]ports.Mark) {
	for name, f := range k.families {
		if from, to := marks[name].Seq+1, f.committed.Load(); from <= to {
			k.log.Info("an older copy of the local store is brought forward from the journal", "name", k.name, "family", name, "from", from, "to", to)
		}
	}
}

// decide compares the store with what the host remembers.
func (k *link) decide(standing ports.Standing) (course, error) {
	known, met, err := k.state.Local()
	if err != nil {
		return course{}, err
	}
	who, err := k.state.Host()
	if err != nil {
		return course{}, err
	}
	k.mu.Lock()
	e := encounter{known: known, met: met, standing: standing, nonces: who.Nonces, journals: map[ports.Family]ports.Bounds{}, accept: k.accept}
	k.mu.Unlock()
	for f, family := range k.families {
		e.journals[f] = family.journal.Bounds()
	}
	for _, w := range k.follows {
		w.mu.Lock()
		had := w.mark.Position.Seqs[k.hostID] > 0
		w.mu.Unlock()
		if had && !slices.Contains(e.copies, w.Name) {
			e.copies = append(e.copies, w.Name)
		}
	}
	return decideCourse(e), nil
}

// history says whose history a store holds that the host does not know, as far as the store tells.
func (k *link) history(ctx context.Context) string {
	var hosts []string
	for _, f := range ports.Families {
		at, err := k.Store.Position(ctx, f)
		if err != nil {
			return ""
		}
		for host, seq := range at.Seqs {
			if short := (ports.HostIdentity{ID: host}).Short(); host == k.hostID && seq > 0 {
				return "; it has this host's changes, as a copy of the old store does"
			} else if seq > 0 && !slices.Contains(hosts, short) {
				hosts = append(hosts, short)
			}
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	slices.Sort(hosts)
	return "; nothing of it is this host's, but what the host " + strings.Join(hosts, " and the host ") + " wrote"
}

// settleSeqs records what is lost, and sees to it that no Seq is given that the store has used.
func (k *link) settleSeqs(standing ports.Standing, plan course) error {
	for f, family := range k.families {
		if span, ok := plan.lost[f]; ok {
			if err := k.lose(f, span); err != nil {
				return err
			}
		}
		if err := family.journal.Advance(standing.Marks[f].Seq); err != nil {
			return err
		}
	}
	return nil
}
