package reference

import (
	"crypto/rand"
	"slices"
	"sync"

	"holdfast/ports"
)

// place is where a record is: an item and a manifest by key, an event by GUID, an attempt by key and number.
type place struct {
	kind   ports.Kind
	key    string
	number int64
}

func placeOf(k ports.Kind, key, guid string, number int64) place {
	switch k {
	case ports.KindEvent:
		return place{kind: k, key: guid}
	case ports.KindAttempt:
		return place{kind: k, key: key, number: number}
	}
	return place{kind: k, key: key}
}

// held is a record with the key that it belongs to, which for an event is its item's.
type held struct {
	ports.Held
	key string
}

// host is what the store knows of a host in one family.
type host struct {
	mark   ports.Mark
	marked bool          // the host has committed, or was told where to go on
	epochs []ports.Epoch // oldest first
	odd    []ports.Decision
}

// half is one family.
type half struct {
	held     map[place]*held
	gone     map[place]ports.Change // tombstones
	graves   []place                // those of gone, oldest first; a place may stand here more often than it is gone
	room     int                    // how many tombstones are kept; then the oldest go
	dropped  map[string]uint64      // of each host, the highest Seq of a tombstone that was let go
	hosts    map[string]*host
	early    []ports.Entry   // what hubs sent before its item, in the order in which it came
	position *ports.Position // as the last Put left it
}

// disk is what a data directory keeps. Whoever holds mu has a transaction, or a snapshot.
type disk struct {
	mu      sync.Mutex
	storeID string
	nonces  map[string]string // by host
	halves  map[ports.Family]*half
}

func newDisk() *disk {
	d := &disk{storeID: rand.Text(), nonces: map[string]string{}, halves: map[ports.Family]*half{}}
	for _, f := range ports.Families {
		d.halves[f] = &half{room: maxGraves, held: map[place]*held{}, gone: map[place]ports.Change{}, dropped: map[string]uint64{}, hosts: map[string]*host{}}
	}
	return d
}

// Disks are what data directories keep, by their names. The zero value is ready.
type Disks struct {
	mu    sync.Mutex
	byDir map[string]*disk
}

// at gives a directory's disk, an empty one for a new directory.
func (all *Disks) at(dir string) *disk {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.byDir == nil {
		all.byDir = map[string]*disk{}
	}
	if all.byDir[dir] == nil {
		all.byDir[dir] = newDisk()
	}
	return all.byDir[dir]
}

// host gives what is known of a host, and remembers it from now on.
func (h *half) host(id string) *host {
	if h.hosts[id] == nil {
		h.hosts[id] = &host{}
	}
	return h.hosts[id]
}

// set makes a record what is held at a place. A record that is there has no tombstone.
func (h *half) set(at place, record *held) {
	delete(h.gone, at)
	h.held[at] = record
}

// maxGraves is how many tombstones of a family are kept.
const maxGraves = 1_000_000

// remove takes a record away. Only what is removed by its own key leaves a tombstone.
func (h *half) remove(at place, change ports.Change) {
	_, present := h.held[at]
	delete(h.held, at)
	if at.kind != ports.KindItem && at.kind != ports.KindManifest {
		return
	}
	if _, gone := h.gone[at]; gone && !present {
		return
	}
	h.gone[at] = change
	h.graves = append(h.graves, at)
	for len(h.gone) > h.room {
		oldest := h.graves[0]
		h.graves = h.graves[1:]
		if c, gone := h.gone[oldest]; gone && !slices.Contains(h.graves, oldest) {
			delete(h.gone, oldest)
			h.dropped[c.Host] = max(h.dropped[c.Host], c.Seq)
		}
	}
}

// reaches are how far the store is with each host that it has a mark or rows of: to its mark, or to its last change, which may
// be further where rows were put.
func (h *half) reaches() map[string]uint64 {
	all := map[string]uint64{}
	for id, known := range h.hosts {
		if known.marked {
			all[id] = known.mark.Seq
		}
	}
	for _, c := range h.gone {
		all[c.Host] = max(all[c.Host], c.Seq)
	}
	for _, record := range h.held {
		all[record.Change.Host] = max(all[record.Change.Host], record.Change.Seq)
	}
	return all
}

// row is a record as backends exchange it.
func (record *held) row(at place) ports.Row {
	row := ports.Row{Kind: at.kind, Key: record.key, Number: at.number, Body: record.Record.JSON(), First: record.First, Change: record.Change}
	if at.kind == ports.KindEvent {
		row.GUID = at.key
	}
	return row
}

// rows are the records of some kinds that pass a test.
func (h *half) rows(pass func(at place, record *held) bool) []ports.Row {
	var rows []ports.Row
	for at, record := range h.held {
		if pass(at, record) {
			rows = append(rows, record.row(at))
		}
	}
	return rows
}
