package beacon

import "sync"

// known remembers what is surely in the store that was found last: so a row that comes again is not sent again, and the
// events of a key are read once. It is forgotten with the session of the beacon, and bounded: when a generation of keys is
// full, the one before it goes.
type known struct {
	mu       sync.Mutex
	now, old map[string]*holding
	doubts   map[string]map[string]bool // by key: EventGUIDs of events whose sending had no answer
}

const (
	knownKeys   = 4096
	knownDoubts = 4096
)

// holding is what is known of one key. It belongs to whoever has locked the key.
type holding struct {
	sum      string // of the item or manifest, with its stamps; "" when nobody knows
	listed   bool   // events are all that the beacon has
	events   []entry
	attempts map[int64]string // sums by number
}

func newKnown() *known {
	return &known{now: map[string]*holding{}, doubts: map[string]map[string]bool{}}
}

// of gives what is known of a key.
func (k *known) of(key string) *holding {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := k.now[key]
	if h == nil {
		if h = k.old[key]; h == nil {
			h = &holding{attempts: map[int64]string{}}
		}
		if len(k.now) >= knownKeys {
			k.now, k.old = map[string]*holding{}, k.now
		}
		k.now[key] = h
	}
	return h
}

// forget forgets what is known of all keys; the doubts stay, for a work may outlive a session.
func (k *known) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.now, k.old = map[string]*holding{}, nil
}

// doubt notes that the sending of an event had no answer.
func (k *known) doubt(key, guid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.doubts[key] == nil {
		if len(k.doubts) >= knownDoubts { // the beacon has been away for long; what was sent then has ended
			clear(k.doubts)
		}
		k.doubts[key] = map[string]bool{}
	}
	k.doubts[key][guid] = true
}

// settle notes that nothing of an event is under way any more.
func (k *known) settle(key, guid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if delete(k.doubts[key], guid); len(k.doubts[key]) == 0 {
		delete(k.doubts, key)
	}
}

func (k *known) doubtful(key, guid string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.doubts[key][guid]
}

// locks let one Put at a time at each key.
type locks struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when the key is free
}

// take waits for a key until done.
func (l *locks) take(key string, done <-chan struct{}) bool {
	for {
		l.mu.Lock()
		busy, is := l.held[key]
		if !is {
			l.held[key] = make(chan struct{})
			l.mu.Unlock()
			return true
		}
		l.mu.Unlock()
		select {
		case <-busy:
		case <-done:
			return false
		}
	}
}

func (l *locks) give(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.held[key])
	delete(l.held, key)
}
