package conformance

import (
	"fmt"
	"sync"

	"holdfast/ports"
)

// What a local store has after its death in the middle of commits.

var commitKillCases = []Case{{
	Topic: "commit", Name: "killed", Needs: needLocal, Of: ports.Families, Kills: true,
	Must: "what a Commit answered survives a kill, a batch is in whole or not at all, and the position is that of the rows",
	Run:  commitKilled,
}, {
	Topic: "commit", Name: "killed-twin", Needs: needLocal, Of: []ports.Family{ports.Queue}, Kills: true,
	Must: "a batch that was answered before a kill gets the same decisions after it, and changes nothing",
	Run:  killedTwin,
}, {
	Topic: "commit", Name: "killed-early", Needs: needLocal, Of: ports.Families, Kills: true,
	Must: "a store that is killed before its first commit opens again, with the nonce and the StoreID that it told",
	Run:  killedEarly,
}}

// perBatch is how many entries a batch has that is killed; a store that is in the middle of one would show some of them.
// perRound is how many batches of a family are sent at most before a kill that is long in coming.
const (
	perBatch = 5
	perRound = 100
)

func commitKilled(c *C) {
	l := local(c)
	answered := map[ports.Family]uint64{}
	for round := range 4 {
		l.writeUntilKilled(2+5*round, answered)
		for _, f := range ports.Families {
			at := l.stand().Marks[f].Seq
			if at < answered[f] {
				c.Errorf("round %d: the store is at %d of %s, and had answered %d before it was killed", round+1, at, f, answered[f])
			}
			if at%perBatch != 0 {
				c.Errorf("round %d: the store is at %d of %s, which is inside a batch", round+1, at, f)
			}
			l.holdsThrough(f, at)
			l.seqs[f] = at
			answered[f] = at
		}
	}
	if answered[ports.Queue] == 0 || answered[ports.Manifest] == 0 {
		c.Errorf("nothing was ever answered before a kill: %v", answered)
	}
}

// writeUntilKilled commits to both families, four batches ahead, and kills the store after some answers. It notes in answered
// how far the answers came.
func (l *localStore) writeUntilKilled(answers int, answered map[ports.Family]uint64) {
	var mu sync.Mutex
	var writers sync.WaitGroup
	enough, ended, killed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	count := 0
	for _, f := range ports.Families {
		seq, epoch, store := l.seqs[f], l.epochs[f].ID, l.store
		writers.Go(func() {
			type sent struct {
				p       ports.Pending
				through uint64
			}
			var flight []sent
			for range perRound {
				b := ports.CommitBatch{Family: f, Epoch: epoch, After: seq, Through: seq + perBatch, Entries: l.numbered(f, seq)}
				p, err := store.Commit(l.c.Ctx, b)
				if err != nil {
					return
				}
				seq = b.Through
				if flight = append(flight, sent{p, seq}); len(flight) < 4 {
					continue
				}
				if _, err := flight[0].p.Wait(l.c.Ctx); err != nil {
					return
				}
				mu.Lock()
				answered[f] = flight[0].through
				if count++; count == answers {
					close(enough)
				}
				mu.Unlock()
				flight = flight[1:]
			}
			<-killed
		})
	}
	go func() { writers.Wait(); close(ended) }()
	select {
	case <-enough:
	case <-ended:
		l.c.Fatalf("commits failed before the store was killed")
	case <-l.c.Ctx.Done():
		close(killed)
		l.c.Fatalf("%d answers did not come", answers)
	}
	l.c.Kill()
	close(killed)
	<-ended
	l.store = power[ports.LocalStore](l.c)
	l.nonce = l.stand().Nonce
	l.open(nil)
}

// numbered are the entries of a batch that begins after a Seq, each of a record of its own.
func (l *localStore) numbered(f ports.Family, after uint64) []ports.Entry {
	entries := make([]ports.Entry, perBatch)
	for i := range entries {
		seq := after + uint64(i) + 1
		key, body := fmt.Sprintf("k%05d", seq), fmt.Sprintf(`{"N":%d}`, seq)
		entries[i] = upsertOf(key, body)
		if f == ports.Manifest {
			entries[i] = manifestOf(key, body)
		}
		entries[i].Seq, entries[i].ReceivedMs, entries[i].Host, entries[i].Origin = seq, firstMs+int64(seq), l.host[:8], ports.OriginHTTP
	}
	return entries
}

// holdsThrough sees to it that the store has the numbered entries up to a Seq, and no other.
func (l *localStore) holdsThrough(f ports.Family, through uint64) {
	next := uint64(1)
	for after := (*ports.Cursor)(nil); ; {
		var page ports.Page
		var err error
		if f == ports.Manifest {
			page, err = l.store.Manifests(l.c.Ctx, ports.ManifestQuery{After: after, Bodies: true})
		} else {
			page, err = l.store.Items(l.c.Ctx, ports.ItemQuery{After: after, Bodies: true})
		}
		if err != nil {
			l.c.Fatalf("list %s: %s", f, faultText(err))
		}
		for _, r := range page.Rows {
			if want := fmt.Sprintf("k%05d", next); r.Key != want || r.Change.Seq != next {
				l.c.Fatalf("the store is at %d of %s; record %d is %q of Seq %d, want %q", through, f, next, r.Key, r.Change.Seq, want)
			}
			next++
		}
		if after = page.Next; after == nil {
			break
		}
	}
	if next-1 != through {
		l.c.Errorf("the store is at %d of %s and has the records of %d entries", through, f, next-1)
	}
}

func killedTwin(c *C) {
	l := local(c)
	b := l.batch(upsertOf("a", `{"N":1}`), patchOf("nobody", `{"A":1}`), eventOf("a", "g", `{}`), eventOf("a", "g", `{}`))
	first, err := l.try(b)
	if err != nil {
		c.Fatalf("Commit: %s", faultText(err))
	}
	l.commit(patchOf("a", `{"N":2}`), upsertOf("nobody", `{}`))
	before := shelfOf(everyRow(c, l.store, "a", "nobody"))
	l.reopen(true)
	c.sameShelf("after a kill", shelfOf(everyRow(c, l.store, "a", "nobody")), before)
	got, err := l.try(b)
	if err != nil {
		c.Fatalf("after a kill, the same batch again: %s", faultText(err))
	}
	if told(got) != told(first) {
		c.Errorf("after a kill, the same batch is decided %s, the first time it was %s", told(got), told(first))
	}
	c.sameShelf("after a late twin", shelfOf(everyRow(c, l.store, "a", "nobody")), before)
	l.isAt(ports.Queue, 6)
	l.commit(patchOf("a", `{"N":3}`))
}

func killedEarly(c *C) {
	l := local(c)
	before := l.stand()
	l.c.Kill()
	l.store = power[ports.LocalStore](c)
	after := l.stand()
	if after.StoreID != before.StoreID || after.Nonce != l.nonce || !after.Empty {
		c.Errorf("Stand says %+v, before the kill it was %+v and Open had left the nonce %q", after, before, l.nonce)
	}
	l.open(nil)
	l.commit(upsertOf("a", `{}`))
	l.commit(manifestOf("a", `{}`))
}
