package core

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"holdfast/ports"
)

// doubtFor is how long a Put without an answer may still take effect. A Put that is sent later settles its keys.
const doubtFor = time.Minute

// unsettled knows the keys of which a follower may not have the present state. What is in doubt stays in memory until a
// position is about to pass it; everything else is in the host's state at once.
type unsettled struct {
	name   string
	family ports.Family
	state  ports.State

	mu     sync.Mutex
	keys   map[string]*unsettledKey
	loose  map[string]bool // keys that the host's state does not have so yet
	counts map[ports.UnsettledKind]int
}

// unsettledKey is one of them.
type unsettledKey struct {
	ports.Unsettled
	again bool  // to be copied as soon as possible
	no    bool  // refused since it was last tried
	late  int64 // of a key that is not in doubt: when a Put of it had no answer, which may still take effect
}

// load reads what the host's state has.
func (u *unsettled) load() error {
	u.keys, u.loose, u.counts = map[string]*unsettledKey{}, map[string]bool{}, map[ports.UnsettledKind]int{}
	for after := ""; ; {
		page, err := u.state.Unsettled(u.name, u.family, after, 1000)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, k := range page {
			u.put(k, true)
			after = k.Key
		}
	}
}

func (u *unsettled) put(k ports.Unsettled, kept bool) {
	if was := u.keys[k.Key]; was != nil {
		u.counts[was.Kind]--
	}
	u.keys[k.Key] = &unsettledKey{Unsettled: k}
	u.counts[k.Kind]++
	if delete(u.loose, k.Key); !kept {
		u.loose[k.Key] = true
	}
}

// kind says whether a key is unsettled, and how; "" when it is settled.
func (u *unsettled) kind(key string) ports.UnsettledKind {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.keys[key]; k != nil {
		return k.Kind
	}
	return ""
}

func (u *unsettled) any() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.keys) > 0
}

// count gives how many keys are unsettled in each way.
func (u *unsettled) count() (refused, inDoubt, discarded int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[ports.RefusedKey] + u.counts[ports.PoisonKey], u.counts[ports.InDoubt], u.counts[ports.DiscardedKey]
}

// refuse records that the store does not take a key, durably.
func (u *unsettled) refuse(key string, kind ports.UnsettledKind, why *ports.Error, first, last uint64, at time.Time) error {
	k := ports.Unsettled{Key: key, Kind: kind, Code: why.Code, Reason: why.Error(), First: first, Last: last, AtMs: at.UnixMilli()}
	u.mu.Lock()
	if was := u.keys[key]; was != nil {
		k.First, k.Last = min(was.First, first), max(was.Last, last)
	}
	u.mu.Unlock()
	if err := u.state.SetUnsettled(u.name, u.family, []ports.Unsettled{k}); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(k, true)
	u.keys[key].no = true
	return nil
}

// doubt records, in memory, that a Put of some keys may still take effect.
func (u *unsettled) doubt(groups []group, why string, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, g := range groups {
		k := ports.Unsettled{Key: g.key, Kind: ports.InDoubt, Reason: why, First: g.first, Last: g.last, AtMs: at.UnixMilli()}
		switch was := u.keys[g.key]; {
		case was == nil:
		case was.Kind == ports.PoisonKey || was.Kind == ports.DiscardedKey:
			was.late = k.AtMs // it stays what it is until it is put
			continue
		default: // one that was refused may have been taken now
			k.First = min(was.First, g.first)
		}
		u.put(k, false)
	}
}

// moved notes that a key changed again which is not put.
func (u *unsettled) moved(g *group) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.keys[g.key]; k != nil {
		if g.last > k.Last {
			k.Last, u.loose[g.key] = g.last, true
		}
	}
}

// keep makes durable what is in memory only, before a position passes it.
func (u *unsettled) keep() error {
	u.mu.Lock()
	var list []ports.Unsettled
	for key := range u.loose {
		list = append(list, u.keys[key].Unsettled)
	}
	u.mu.Unlock()
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b ports.Unsettled) int { return cmp.Compare(a.Key, b.Key) })
	if err := u.state.SetUnsettled(u.name, u.family, list); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range list {
		if own := u.keys[k.Key]; own != nil && own.Unsettled == k {
			delete(u.loose, k.Key)
		}
	}
	return nil
}

// settle forgets keys that the store has, by Puts that were sent at a moment. One that came into doubt after it stays, and one
// that an earlier Put may still overwrite comes into doubt.
func (u *unsettled) settle(sent time.Time, keys ...string) error {
	u.mu.Lock()
	var gone []string
	for _, key := range keys {
		k := u.keys[key]
		switch {
		case k == nil || k.Kind == ports.InDoubt && k.AtMs > sent.UnixMilli():
		case k.late != 0 && time.UnixMilli(k.late).Add(doubtFor).After(sent):
			again := k.Unsettled
			again.Kind, again.AtMs, again.Reason = ports.InDoubt, k.late, "a Put had no answer in time"
			u.put(again, false)
		default:
			gone = append(gone, key)
		}
	}
	u.mu.Unlock()
	if len(gone) == 0 {
		return nil
	}
	if err := u.state.DropUnsettled(u.name, u.family, gone...); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range gone {
		if k := u.keys[key]; k != nil {
			u.counts[k.Kind]--
			delete(u.keys, key)
			delete(u.loose, key)
		}
	}
	return nil
}

// due gives keys that are to be copied now, at most n, and how long until the next one is.
func (u *unsettled) due(now time.Time, n int) (keys []string, next time.Duration) {
	u.mu.Lock()
	defer u.mu.Unlock()
	next = time.Hour
	for key, k := range u.keys {
		wait := time.UnixMilli(k.AtMs).Add(doubtFor).Sub(now)
		switch {
		case k.again || k.Kind == ports.InDoubt && wait <= 0:
			if len(keys) < n {
				keys = append(keys, key)
			}
			next = 0
		case k.Kind == ports.InDoubt:
			next = min(next, wait)
		}
	}
	slices.Sort(keys)
	return keys, next
}

// retry has a key copied again, or every one that was refused or given up; it says how many. What is in doubt settles by itself.
func (u *unsettled) retry(key string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if key != "" {
		if k := u.keys[key]; k != nil {
			k.again = k.Kind != ports.InDoubt
			n = 1
		}
		return n
	}
	for _, k := range u.keys {
		if k.Kind != ports.InDoubt {
			k.again = true
			n++
		}
	}
	return n
}

// tried says that a key that was to be copied again was tried.
func (u *unsettled) tried(key string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if k := u.keys[key]; k != nil {
		k.again, k.no = false, false
	}
}

// failed says whether a key was refused since it was tried.
func (u *unsettled) failed(key string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	k := u.keys[key]
	return k != nil && k.no
}

// over says that the doubtful Puts of keys have ended: another Put settles them at once.
func (u *unsettled) over(groups []group, sent time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, g := range groups {
		if k := u.keys[g.key]; k != nil && k.Kind == ports.InDoubt && k.AtMs <= sent.UnixMilli() {
			k.again = true
		}
	}
}

// allOver says that no Put of before is under way any more: another one settles what is in doubt.
func (u *unsettled) allOver() {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, k := range u.keys {
		if k.late = 0; k.Kind == ports.InDoubt {
			k.again = true
		}
	}
}

// discard gives a key up.
func (u *unsettled) discard(key string, at time.Time) error {
	u.mu.Lock()
	was := u.keys[key]
	if was == nil {
		u.mu.Unlock()
		return ports.InField(ports.NotFound, "Key", "is not unsettled in %s; `holdfast unsettled list` shows what is", u.name)
	}
	k := was.Unsettled
	u.mu.Unlock()
	if k.Kind == ports.InDoubt {
		return ports.InField(ports.Conflict, "Key", "is only in doubt; it settles by itself within a minute of the backend's return")
	}
	k.Kind, k.AtMs = ports.DiscardedKey, at.UnixMilli()
	if err := u.state.SetUnsettled(u.name, u.family, []ports.Unsettled{k}); err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.put(k, true)
	return nil
}

// list gives keys in order, after a key.
func (u *unsettled) list(after string, limit int) (list []ports.Unsettled) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, k := range u.keys {
		if key > after {
			list = append(list, k.Unsettled)
		}
	}
	slices.SortFunc(list, func(a, b ports.Unsettled) int { return cmp.Compare(a.Key, b.Key) })
	return list[:min(len(list), limit)]
}
