package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"holdfast/ports"
)

// The beacons of a joined hub, as a ports.Mesh: a backend may live behind one of them. A stock hub tells nobody who comes and
// goes, so it is asked every few seconds; what it is to have done goes over its dispatch route, to the beacon of a name and to
// no other.

var _ ports.Mesh = (*Member)(nil)

// outlook is who was at a hub when it was last asked.
type outlook struct {
	mu    sync.Mutex
	at    time.Time
	known ports.Beacons
}

// Watch is ports.Mesh's. While the hub cannot be asked nobody is there.
func (m *Member) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	tick := time.NewTicker(m.timing.Look)
	defer tick.Stop()
	for {
		if known := m.who(ctx); known.Version != since {
			return known, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ports.Beacons{}, ports.Wrap(ports.CodeOf(ctx.Err()), "mesh", ctx.Err())
		}
	}
}

// who tells who is there. The hub is asked once for all who want to know at about the same time.
func (m *Member) who(ctx context.Context) ports.Beacons {
	o := &m.outlook
	o.mu.Lock()
	defer o.mu.Unlock()
	if time.Since(o.at) < m.timing.Look/2 {
		return o.known
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), m.timing.Send) // its answer serves others too
	defer cancel()
	var list []hubBeacon
	status, err := m.lookAt(ctx, "/Beacon", &list)
	next := make([]ports.Beacon, 0, len(list))
	if err == nil && status == http.StatusOK {
		for i := range list {
			if b := &list[i]; b.Name != m.name {
				next = append(next, b.port())
			}
		}
	} else {
		for _, b := range o.known.List { // it cannot be reached, and neither can they
			b.Online = false
			next = append(next, b)
		}
	}
	o.at = time.Now()
	if o.known.Version == 0 || !reflect.DeepEqual(next, o.known.List) {
		o.known = ports.Beacons{Version: o.known.Version + 1, List: next}
	}
	return o.known
}

// port is a hub's record as ports has it. The id of a beacon is another one after each connection.
func (b *hubBeacon) port() ports.Beacon {
	session := fnv.New64a()
	_, _ = session.Write([]byte(b.BeaconID)) // it never fails
	p := ports.Beacon{
		Name: b.Name, ID: b.BeaconID, Session: session.Sum64(), Online: b.Status != "Offline", Capabilities: b.Capabilities,
		MaxConcurrent: max(1, b.MaxConcurrent),
	}
	p.RegisteredAt, _ = time.Parse(time.RFC3339, b.RegisteredAt)
	for name, value := range b.Tags {
		if text, err := json.Marshal(value); err == nil {
			if p.Tags == nil {
				p.Tags = map[string]json.RawMessage{}
			}
			p.Tags[name] = text
		}
	}
	return p
}

// Dispatch is ports.Mesh's. A work names its beacon: what the hub calls a free pool is not for persistence.
func (m *Member) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	deadline, bound := ctx.Deadline()
	switch {
	case !bound:
		return ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "mesh", "a work needs a deadline")
	case w.Beacon == "" || w.Capability == "":
		return ports.WorkAnswer{}, ports.InField(ports.Invalid, "Beacon", "or the Capability is missing; at a joined hub a work is for one beacon")
	}
	known := m.who(ctx)
	there := false
	for _, b := range known.List {
		if b.Name != w.Beacon {
			continue
		}
		if w.Session != 0 && w.Session != b.Session {
			return ports.WorkAnswer{}, anotherSession(w.Beacon)
		}
		there = b.Online
	}
	if !there {
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "the beacon %q is not at the hub %s", printable(w.Beacon), m.hub)
	}
	settings, err := marked(w)
	if err != nil {
		return ports.WorkAnswer{}, err
	}
	left := time.Until(deadline)
	body := newObject(len(settings)+400).str("Capability", w.Capability).str("Action", w.Action).raw("Settings", settings).
		str("AffinityKey", w.Beacon).boolean("RequireAffinityMatch", true).number("TimeoutMs", max(1, (left-left/10).Milliseconds())).done()
	status, _, text, err := m.web.call(ctx, http.MethodPost, "/Beacon/Work/Dispatch", body, m.web.cookieNow())
	if err == nil && status == http.StatusUnauthorized && m.web.login(ctx) == nil {
		status, _, text, err = m.web.call(ctx, http.MethodPost, "/Beacon/Work/Dispatch", body, m.web.cookieNow())
	}
	if err != nil {
		return ports.WorkAnswer{}, broken(ctx, err)
	}
	return m.dispatched(w.Beacon, status, text)
}

// workMark is the member that tells a work of holdfast from those of other people, of whatever capability it is.
const workMark = `"HoldfastWork"`

// marked are a work's settings with its capability and the mark among them: should the hub write about the work, it is known by that
// as one of ours, and nothing of it is kept.
func marked(w ports.Work) ([]byte, error) {
	o, has := newObject(len(w.Settings)+64), false
	if len(w.Settings) > 0 && string(w.Settings) != "null" {
		err := ports.ScanObject(w.Settings, maxFrameDepth, func(name, value []byte) error {
			has = has || string(name) == `"Capability"`
			o.member(name, value)
			return nil
		})
		if err != nil {
			return nil, ports.Wrap(ports.Invalid, "Settings", err)
		}
	}
	if !has {
		o.str("Capability", w.Capability)
	}
	return o.member([]byte(workMark), []byte("true")).done(), nil
}

// broken tells an attempt that never began from one whose outcome is unknown.
func broken(ctx context.Context, err error) error {
	switch dial, ok := errors.AsType[*net.OpError](err); {
	case ctx.Err() != nil:
		return ports.Wrap(ports.CodeOf(ctx.Err()), "mesh", fmt.Errorf("the hub gave no answer: %w", ctx.Err()))
	case ok && dial.Op == "dial":
		return ports.Wrap(ports.Unavailable, "mesh", err)
	}
	return ports.Wrap(ports.BackendGone, "mesh", err)
}

// dispatched reads the answer of the dispatch route (wire contract A.12).
func (m *Member) dispatched(beacon string, status int, text []byte) (ports.WorkAnswer, error) {
	var answer struct {
		Success      bool
		WorkItemHash string
		Outputs      json.RawMessage
		Log          json.RawMessage
		Error        string
	}
	if json.Unmarshal(text, &answer) != nil {
		return ports.WorkAnswer{}, ports.Errorf(ports.BackendGone, "mesh", "the hub answered a dispatch with %d, and no JSON", status)
	}
	reason := m.hide(answer.Error)
	switch {
	case status == http.StatusOK && answer.Success:
		m.mu.Lock()
		m.ours.add(answer.WorkItemHash)
		m.mu.Unlock()
		a := onlyObject(answerOf(false, answer.Outputs, nil, answer.Log))
		a.WorkItemHash, a.Beacon = answer.WorkItemHash, beacon
		return a, nil
	case status == http.StatusInternalServerError && strings.Contains(reason, "timed out"):
		return ports.WorkAnswer{}, ports.Errorf(ports.Deadline, "mesh", "the beacon %q did not report in time; the outcome is unknown", printable(beacon))
	case status == http.StatusInternalServerError:
		return ports.WorkAnswer{Beacon: beacon, Failure: reasonOr(reason, "the beacon failed without saying why")}, nil
	case status == http.StatusBadRequest:
		return ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "mesh", "the hub refuses the work: %s", reason)
	case status == http.StatusUnauthorized:
		return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "the hub asks for a login; give join_user and join_password in the mesh block")
	}
	return ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "the hub answers a dispatch with %d: %s", status, reason)
}

// Together is a mesh of two: the beacons of our own hub, and those of one that was joined. A name that both have is our own's. own
// may be nil.
func Together(own *Hub, joined *Member) ports.Mesh { return &together{own, joined} }

type together struct {
	own    *Hub
	joined *Member
}

func (t *together) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	if t.own == nil {
		return t.joined.Watch(ctx, since)
	}
	for {
		ours, err := t.own.Watch(ctx, 0)
		if err != nil {
			return ports.Beacons{}, err
		}
		theirs := t.joined.who(ctx)
		all := ports.Beacons{Version: ours.Version<<32 | theirs.Version&(1<<32-1), List: ours.List}
		if all.Version != since {
			for _, b := range theirs.List {
				if !isIn(ours.List, b.Name) {
					all.List = append(all.List, b)
				}
			}
			return all, nil
		}
		wait, cancel := context.WithTimeout(ctx, t.joined.timing.Look)
		_, err = t.own.Watch(wait, ours.Version)
		cancel()
		switch {
		case ctx.Err() != nil:
			return ports.Beacons{}, ports.Wrap(ports.CodeOf(ctx.Err()), "mesh", ctx.Err())
		case err != nil && ports.CodeOf(err) != ports.Deadline:
			return ports.Beacons{}, err
		}
	}
}

func (t *together) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	if t.own == nil || w.Beacon != "" && !t.own.knows(w.Beacon) {
		return t.joined.Dispatch(ctx, w)
	}
	return t.own.Dispatch(ctx, w)
}

// knows says whether a beacon of a name has registered here, and was not forgotten.
func (h *Hub) knows(name string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return isIn(h.snapshot().List, name)
}

func isIn(list []ports.Beacon, name string) bool {
	return slices.ContainsFunc(list, func(b ports.Beacon) bool { return b.Name == name })
}
