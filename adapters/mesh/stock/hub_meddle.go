package stock

// What a test does to the way between a hub and a beacon: hold back what is pushed, let it go in another order, push again,
// break sockets.

import "slices"

// remembered is how many pushed works can be pushed again.
const remembered = 4096

// meddling is what a test does to one beacon.
type meddling struct {
	holding bool
	held    [][]byte
	sent    [][]byte
}

// push hands a work to a beacon; false says that there is nobody to take it.
func (h *Hub) push(b *record, item *WorkItem) bool {
	doc := encode(map[string]any{"EventType": "WorkItem", "WorkItem": h.delivery(item)})
	if b.imagined {
		return b.pushes
	}
	s := h.sockets[b.BeaconID]
	if s == nil {
		return false
	}
	m := h.meddle(b.Name)
	if m.holding {
		m.held = append(m.held, doc)
		h.note()
		return true
	}
	return h.deliver(m, s, doc)
}

func (h *Hub) deliver(m *meddling, s *hubSocket, doc []byte) bool {
	if !s.sendRaw(doc) {
		return false
	}
	if m.sent = append(m.sent, doc); len(m.sent) > remembered {
		m.sent = slices.Delete(m.sent, 0, remembered/2)
	}
	return true
}

func (h *Hub) meddle(name string) *meddling {
	m := h.meddling[name]
	if m == nil {
		m = &meddling{}
		h.meddling[name] = m
	}
	return m
}

// Hold keeps back what is pushed to a beacon from now on. The time of each work runs all the same.
func (h *Hub) Hold(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.meddle(name).holding = true
}

// Held counts what is kept back.
func (h *Hub) Held(name string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.meddle(name).held)
}

// Release lets go what was kept back, in the order that shuffle makes; it is called as rand.Shuffle is, nil leaves the order.
func (h *Hub) Release(name string, shuffle func(n int, swap func(i, j int))) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	m := h.meddle(name)
	held := m.held
	m.held, m.holding = nil, false
	if shuffle != nil {
		shuffle(len(held), func(i, j int) { held[i], held[j] = held[j], held[i] })
	}
	b := h.named(name)
	if b == nil || h.sockets[b.BeaconID] == nil {
		return 0
	}
	for _, doc := range held {
		h.deliver(m, h.sockets[b.BeaconID], doc)
	}
	return len(held)
}

// Redeliver pushes the newest n works again that were pushed to a beacon, the older ones first, over its present socket.
func (h *Hub) Redeliver(name string, n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	m, b := h.meddle(name), h.named(name)
	if b == nil || h.sockets[b.BeaconID] == nil {
		return 0
	}
	again := slices.Clone(m.sent[max(0, len(m.sent)-n):])
	for _, doc := range again {
		h.sockets[b.BeaconID].sendRaw(doc)
	}
	return len(again)
}

// DropSocket breaks the socket of a beacon without a goodbye.
func (h *Hub) DropSocket(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.named(name)
	if b == nil || h.sockets[b.BeaconID] == nil {
		return false
	}
	s := h.sockets[b.BeaconID]
	s.end()
	h.gone(s)
	return true
}

// Say sends a beacon a frame of the test's making.
func (h *Hub) Say(name string, frame any) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := h.named(name)
	return b != nil && h.sockets[b.BeaconID] != nil && h.sockets[b.BeaconID].send(frame)
}
