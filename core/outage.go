package core

import (
	"maps"
	"time"
)

// What is told of the local store: whether it is away, since when, and when it is back. A store can be opened, say that it could take
// a write, and take none: its disk is full. So it counts as back when it has taken one, if any waits; and as away since the first one
// that it did not take.

// appearance is the store's state as everybody sees it.
type appearance struct {
	phase  phase
	detail string
	remedy string
	since  time.Time // it is in this phase; one that is being opened was away before
	gone   time.Time // it is not ready,
	logged bool      // and whether the log says so
}

// quietOutage is how long an outage may be that is not worth a line in the log, as there is one at every start.
const quietOutage = 2 * time.Second

// tell says in which phase the store is now, unless that is only another try.
func (k *link) tell(p phase, detail, remedy string) {
	switch {
	case p == opening && detail == "" && k.stuck, p == ready && k.shy && len(k.owed) > 0:
		return
	case p == ready:
		k.shy, k.stuck = false, false
	}
	now, t := k.clock(), &k.told
	if t.phase == ready && p != ready {
		t.gone = now
	}
	if away := (t.phase == waiting || t.phase == opening) && (p == waiting || p == opening); !away && t.phase != p {
		t.since = now
	}
	t.phase, t.detail, t.remedy = p, detail, remedy
	if t.logged && p == ready {
		t.logged = false
		k.log.Info("the local store is back", "name", k.name)
	}
}

// shown is what is told now.
func (k *link) shown() appearance {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.told
}

// ails notes that something failed; stuck says that the store was opened before, and lives.
func (k *link) ails(stuck bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.shy, k.stuck = true, stuck
}

// opened notes which families have writes for the store that was opened.
func (k *link) opened() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.owed = map[*family]uint64{}
	for _, f := range k.families {
		if at := f.committed.Load(); at < f.head() {
			k.owed[f] = at
		}
	}
}

// took notes that the store took a batch: it is back once it took one of each family in which writes waited.
func (k *link) took() {
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.owed, func(f *family, at uint64) bool { return f.committed.Load() > at })
	if k.shy && k.phase == ready {
		k.tell(ready, "", "")
	}
}

// logAway has the log say that the store is away, once it was for a while.
func (k *link) logAway(why error) {
	k.mu.Lock()
	now := k.told.phase != ready && !k.told.logged && k.clock().Sub(k.told.gone) >= quietOutage
	k.told.logged = k.told.logged || now
	k.mu.Unlock()
	if now {
		k.log.Warn("the local store is away; writes are accepted and wait for it", "name", k.name, "reason", why)
	}
}
