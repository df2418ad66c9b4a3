package mesh

import (
	"net/http"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// The routes about beacons themselves: who comes, who is there, who goes.

// register takes a registration over HTTP: of a poller, or of a client that says anew what it offers.
func (h *Hub) register(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	defer done()
	r, err := parseRegistration(text)
	var record []byte
	if err == nil {
		err = h.access.lets(c.who, r)
	}
	if err == nil {
		h.step(func(now time.Time) {
			if h.closed {
				err = errStopping
				return
			}
			err = h.join(r, 0, c.who.sessionID, now, func(b *beacon) { record = h.beaconRecord(b) })
		})
	}
	if err != nil {
		refuse(c.w, err)
		return
	}
	h.access.isNow(c.who, r.name, h.clock())
	send(c.w, http.StatusOK, record)
}

// errStranger is told to a poller that the hub does not know, after a restart of the hub for instance: only a 401 makes a
// stock client register again.
var errStranger = ports.Errorf(ports.Unauthorized, "", "this beacon is not known here; register again")

func (h *Hub) heartbeat(c *call) {
	if _, done, err := h.body(c, h.limits.Small); err != nil {
		refuse(c.w, err)
		return
	} else {
		done()
	}
	var record []byte
	h.step(func(now time.Time) {
		if b := h.registry.byID[c.key]; c.who.may(b) {
			h.alive(b, 0, false, now)
			record = h.beaconRecord(b)
		}
	})
	if record == nil {
		refuse(c.w, errStranger)
		return
	}
	send(c.w, http.StatusOK, record)
}

// goodbyeTwice is how long after the goodbye over its socket a stock client may say it over HTTP again.
const goodbyeTwice = 15 * time.Second

// goodbye lets a beacon go that said so over the socket conn or, with 0, over HTTP. Of several programs with one Name, as in a
// rolling restart, only the one that says it goes. It is called in a step.
func (h *Hub) goodbye(b *beacon, conn uint64, now time.Time) {
	another := len(b.conns) > 1
	if conn == 0 {
		another = another || len(b.conns) > 0 && now.Sub(b.leftAt) < goodbyeTwice
	}
	h.log.Info("a beacon says goodbye", "beacon", b.name, "another of its name stays", another)
	switch {
	case another && conn != 0:
		b.leftAt = now
		h.lost(conn, now)
		return
	case another:
		return
	}
	for _, open := range b.conns {
		if open != conn { // its client connects again, for it did not say that it goes
			h.sockets[open].letGo(websocket.StatusGoingAway)
		}
	}
	h.forget(b, now)
}

func (h *Hub) deregister(c *call) {
	known := false
	h.step(func(now time.Time) {
		if b := h.registry.byID[c.key]; c.who.may(b) {
			known = true
			h.goodbye(b, 0, now)
		}
	})
	if !known {
		refuse(c.w, errNoBeacon)
		return
	}
	send(c.w, http.StatusOK, newObject(100).str("Status", "Deregistered").str("BeaconID", c.key).done())
}

var errNoBeacon = ports.Errorf(ports.NotFound, "", "no such beacon")

func (h *Hub) beacon(c *call) {
	var record []byte
	h.look(func() {
		if b := h.registry.byID[c.key]; b != nil {
			record = h.beaconRecord(b)
		}
	})
	if record == nil {
		refuse(c.w, errNoBeacon)
		return
	}
	send(c.w, http.StatusOK, record)
}

func (h *Hub) beacons(c *call) {
	var records [][]byte
	h.look(func() {
		for _, b := range h.registry.all {
			records = append(records, h.beaconRecord(b))
		}
	})
	send(c.w, http.StatusOK, jsonList(records))
}

// look reads the hub's state.
func (h *Hub) look(read func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	read()
}

// schemas are what the beacons say of their actions, and how many beacons there are.
func (h *Hub) schemas() (list []beaconSchemas, offered []string) {
	seen := map[string]bool{}
	h.look(func() {
		for _, b := range h.registry.all {
			list = append(list, beaconSchemas{b.name, b.online, b.opaque["ActionSchemas"]})
			for _, capability := range b.capabilities {
				if !seen[capability] {
					seen[capability] = true
					offered = append(offered, capability)
				}
			}
		}
	})
	return list, offered
}

func (h *Hub) capabilities(c *call) {
	list, offered := h.schemas()
	var entries [][]byte
	for _, e := range catalog(list) {
		entries = append(entries, e.text(false))
	}
	send(c.w, http.StatusOK, newObject(1000).strs("Capabilities", offered).number("BeaconCount", int64(len(list))).
		raw("ActionCatalog", jsonList(entries)).done())
}

func (h *Hub) actions(c *call) {
	list, _ := h.schemas()
	var entries [][]byte
	for _, e := range catalog(list) {
		entries = append(entries, e.text(true))
	}
	send(c.w, http.StatusOK, newObject(1000).raw("Actions", jsonList(entries)).done())
}

// affinity lists the bindings of affinity keys. There are none: a key names a beacon, or says nothing.
func (h *Hub) affinity(c *call) { send(c.w, http.StatusOK, []byte("[]")) }

// status is the stock hub's, and how many works beacons are busy with that nobody waits for.
func (h *Hub) status(c *call) {
	mode := "promiscuous"
	if h.access.secured {
		mode = "authenticated"
	}
	send(c.w, http.StatusOK, newObject(200).str("Status", "Running").number("ScheduleEntries", 0).boolean("ScheduleRunning", false).
		boolean("AuthEnabled", h.access.secured).str("AuthMode", mode).boolean("SupportsUserManagement", false).
		lingering(h.Status().Lingering).done())
}
