package conformance

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	"holdfast/ports"
)

// Followers that copy a store while it is written.

var freshnessCases = []Case{{
	Topic: "freshness", Name: "followed", Needs: needLocal, Of: ports.Families,
	Must: "who follows Changes while the store is written is at each End exactly where the store was: it misses no change, sees no record go back, and an End is never behind what was answered before",
	Run:  followed,
}, {
	Topic: "freshness", Name: "one-key", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "Changes of one key sees the family in one snapshot: the record that it tells is the newest before its End",
	Run:  followedKey,
}, {
	Topic: "freshness", Name: "readers", Needs: needLocal, Of: ports.Families,
	Must: "a reader shows what was answered before it was asked, and no record goes back",
	Run:  readersAreFresh,
}}

// busy are four writers that commit to both families at once, and what they wrote.
type busy struct {
	l *localStore

	mu       sync.Mutex // batches are numbered and sent in one order
	written  map[ports.Family][]wrote
	answered map[ports.Family]uint64
}

// wrote is an entry, the first of a family being Seq 1.
type wrote struct {
	id   recordID
	gone bool
}

// busyKeys are the records that the writers change again and again.
var busyKeys = []string{"k0", "k1", "k2", "k3", "k4", "k5", "k6"}

func (l *localStore) busy() *busy {
	return &busy{l: l, written: map[ports.Family][]wrote{}, answered: map[ports.Family]uint64{}}
}

// run has the writers commit some batches each and calls after each answer; it gives a channel that is closed at the end.
func (b *busy) run(batches int, after func(f ports.Family, last wrote, seq uint64)) <-chan struct{} {
	var writers sync.WaitGroup
	for who := range 4 {
		random := rand.New(rand.NewPCG(uint64(who), 1))
		writers.Go(func() {
			for range batches {
				f := ports.Families[random.IntN(2)]
				p, through, last, err := b.send(f, random)
				if err == nil {
					_, err = p.Wait(b.l.c.Ctx)
				}
				if err != nil {
					b.l.c.Errorf("a commit beside others, through %d of %s: %s", through, f, faultText(err))
					return
				}
				b.mu.Lock()
				b.answered[f] = max(b.answered[f], through)
				b.mu.Unlock()
				if after != nil {
					after(f, last, through)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { writers.Wait(); close(ended) }()
	return ended
}

// send submits a batch of some random entries.
func (b *busy) send(f ports.Family, random *rand.Rand) (p ports.Pending, through uint64, last wrote, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var entries []ports.Entry
	for range 1 + random.IntN(3) {
		e, w := b.entry(f, b.l.seqs[f]+uint64(len(entries))+1, random)
		entries, last = append(entries, e), w
		b.written[f] = append(b.written[f], w)
	}
	batch := b.l.batch(entries...)
	p, err = b.l.store.Commit(b.l.c.Ctx, batch)
	return p, batch.Through, last, err
}

func (b *busy) entry(f ports.Family, seq uint64, random *rand.Rand) (ports.Entry, wrote) {
	key := busyKeys[random.IntN(len(busyKeys))]
	body := fmt.Sprintf(`{"N":%d}`, seq) // so that each entry changes its record
	dice := random.IntN(8)
	switch {
	case f == ports.Manifest && dice < 3 && b.present(key):
		return removalOf(key), wrote{recordID{kind: ports.KindManifest, key: key}, true}
	case f == ports.Manifest:
		return manifestOf(key, body), wrote{recordID{kind: ports.KindManifest, key: key}, false}
	case dice < 2:
		guid := fmt.Sprint("g", seq)
		return eventOf(key, guid, body), wrote{recordID{kind: ports.KindEvent, key: guid}, false}
	case dice < 4:
		return attemptOf(key, int64(seq), body), wrote{recordID{ports.KindAttempt, key, int64(seq)}, false}
	}
	return upsertOf(key, body), wrote{recordID{kind: ports.KindItem, key: key}, false}
}

// present says whether a manifest was written and not removed since: a removal of what is not there is no change.
func (b *busy) present(key string) bool {
	for _, w := range slices.Backward(b.written[ports.Manifest]) {
		if w.id.key == key {
			return !w.gone
		}
	}
	return false
}

// between gives what was written behind one Seq up to another.
func (b *busy) between(f ports.Family, after, through uint64) []wrote {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]wrote(nil), b.written[f][min(after, uint64(len(b.written[f]))):min(through, uint64(len(b.written[f])))]...)
}

func (b *busy) answeredSoFar(f ports.Family) uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answered[f]
}

// copier follows one family.
type copier struct {
	busy   *busy
	family ports.Family
	at     ports.Position
	copied shelf
	want   map[recordID]uint64 // Seq of the newest write of each record at the last End
	walks  int
}

// follow walks once to the End and looks at what the copy has then.
func (f *copier) follow() {
	c, before := f.busy.l.c, f.at.Seqs[f.busy.l.host]
	fresh := f.busy.answeredSoFar(f.family)
	rows, end := f.busy.l.walk(ports.ChangesQuery{Family: f.family, After: f.at, Limit: 1 + f.walks%9}, nil)
	f.walks++
	for i := range rows {
		r := &rows[i]
		if had, there := f.copied[idOf(r)]; there && had.Change.Seq > r.Change.Seq {
			c.Errorf("%s goes back from %d to %d", idOf(r), had.Change.Seq, r.Change.Seq)
		}
		f.copied.take(r)
	}
	f.at = end
	through := end.Seqs[f.busy.l.host]
	if through < fresh {
		c.Errorf("an End is at %d of %s, and %d was answered before it was asked for", through, f.family, fresh)
	}
	for i, w := range f.busy.between(f.family, before, through) {
		if w.gone {
			delete(f.want, w.id)
		} else {
			f.want[w.id] = before + uint64(i) + 1
		}
	}
	for id, seq := range f.want {
		if got := f.copied[id].Change.Seq; got != seq {
			c.Errorf("at the End %d of %s the copy has %s as of %d, and the store was written at %d", through, f.family, id, got, seq)
		}
	}
	for id, row := range f.copied {
		if _, there := f.want[id]; !there {
			c.Errorf("at the End %d of %s the copy has %s as of %d, which was removed", through, f.family, id, row.Change.Seq)
		}
	}
}

func followed(c *C) {
	l := local(c)
	b := l.busy()
	var first, copiers sync.WaitGroup
	begun := make(chan struct{}) // closed when each follower has walked once
	ended := b.run(50, func(ports.Family, wrote, uint64) {
		select {
		case <-begun:
		case <-c.Ctx.Done():
		}
	})
	all := map[ports.Family]*copier{}
	for _, f := range ports.Families {
		follower := &copier{busy: b, family: f, copied: shelf{}, want: map[recordID]uint64{}}
		all[f] = follower
		begins := sync.OnceFunc(first.Done)
		first.Add(1)
		copiers.Go(func() {
			defer begins()
			for more := true; more && c.Ctx.Err() == nil && !c.failed(); {
				select {
				case <-ended:
					more = false // and once more, to the last End
				default:
				}
				follower.follow()
				begins()
			}
		})
	}
	first.Wait()
	close(begun)
	copiers.Wait()
	<-ended
	for f, follower := range all {
		c.sameShelf("at the end, the copy of "+string(f), follower.copied, shelfOf(everyRow(c, l.store, busyKeys...)).only(f))
	}
}

func followedKey(c *C) {
	l := local(c)
	const writes = 150
	done := make(chan error, 1)
	go func() {
		var err error
		for n := 1; n <= writes && err == nil; n++ {
			_, err = l.try(l.batch(upsertOf("k", fmt.Sprintf(`{"N":%d}`, n))))
		}
		done <- err
	}()
	for seq := uint64(0); seq < writes && c.Ctx.Err() == nil && !c.failed(); {
		page, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, Key: "k"})
		if err != nil || page.End == nil {
			c.Fatalf("Changes of one key: End %v, %s", page.End, faultText(err))
		}
		seq = page.End.Seqs[hostA]
		if n := len(page.Rows); n > 1 || seq > 0 && (n == 0 || page.Rows[0].Change.Seq != seq) {
			c.Errorf("Changes of one key ends at %d, and the record in it is %+v", seq, page.Rows)
		}
		select {
		case err := <-done:
			if err != nil {
				c.Fatalf("commit: %s", faultText(err))
			}
			done <- nil
		default:
		}
	}
	if err := <-done; err != nil {
		c.Errorf("commit: %s", faultText(err))
	}
}

func readersAreFresh(c *C) {
	l := local(c)
	b := l.busy()
	<-b.run(40, func(f ports.Family, last wrote, seq uint64) {
		var row ports.Row
		var err error
		switch {
		case last.gone || last.id.kind == ports.KindEvent || last.id.kind == ports.KindAttempt:
			return
		case f == ports.Manifest:
			row, err = l.store.Manifest(c.Ctx, last.id.key)
		default:
			row, err = l.store.Item(c.Ctx, last.id.key)
		}
		if ports.CodeOf(err) == ports.NotFound && f == ports.Manifest {
			return // removed since by another writer
		}
		if err != nil || row.Change.Seq < seq {
			c.Errorf("after the answer of write %d, %s reads as of %d, %s", seq, last.id, row.Change.Seq, faultText(err))
		}
	})
}
