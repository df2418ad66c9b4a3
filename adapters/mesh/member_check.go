package mesh

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Every minute, and soon after each registration, a member looks whether it is still registered, and whether the hub keeps its history here. A record can vanish
// without notice, and a hub takes its backend from an assignment, a tag, the first beacon of its list or a sticky binding, and
// tells nobody (wire contract A.6, A.12, B.7, C.0, H).

// hubBeacon is what counts of a beacon's record.
type hubBeacon struct {
	BeaconID      string
	Name          string
	Status        string
	HostID        *string
	Capabilities  []string
	MaxConcurrent int
	Tags          map[string]any
	RegisteredAt  string
}

func (b *hubBeacon) can(capability string) bool { return slices.Contains(b.Capabilities, capability) }

// hubBinding ties an affinity key to a beacon.
type hubBinding struct {
	AffinityKey string
	BeaconID    string
	ExpiresAt   string
}

// hubAssignment is how one half of history is assigned to a databeacon.
type hubAssignment struct {
	State            string
	AssignedBeaconID *string
}

// sight is what one look at the hub saw.
type sight struct {
	beacons     []hubBeacon
	bindings    []hubBinding
	assignments map[string]hubAssignment // by "Queue" and "Manifest"
}

// renewal is when a look makes the beacon register again.
type renewal int

const (
	never       renewal = iota // it has registered just now
	ifForgotten                // the hub does not know it: an older socket of its name that ends late takes the newer record with it
	inDoubt                    // also where the hub does not say whether it does, or may have something to send
)

// forgets is how often in a row a hub may forget the beacon and be looked at soon again: one that never knows it is asked calmly.
const forgets = 2

// check looks once.
func (m *Member) check(s *visit, again renewal) {
	status, err := m.lookAt(s.ctx, "/Beacon/"+url.PathEscape(s.id()), &hubBeacon{})
	if s.ctx.Err() != nil {
		return
	}
	if err != nil {
		m.failed(err)
		return
	}
	// Where the hub lets nobody look without a login, registering again is the look: it changes nothing where all is well.
	forgotten := status == http.StatusNotFound
	if again != never && forgotten || again == inDoubt && (status == http.StatusUnauthorized || m.flushBroke()) {
		if forgotten {
			s.forgotten.Add(1)
			m.log.Warn("the hub has forgotten this beacon; registering again", "hub", m.hub, "beacon", m.name)
		}
		_ = s.register() // its answer is another reason to look
		if forgotten {
			return
		}
	}
	if !forgotten {
		s.forgotten.Store(0)
	}
	m.count(func(v *MemberStatus) { v.CheckedAt = time.Now() })
	if status == http.StatusUnauthorized {
		refused, remedy := m.loginRefused(), "give join_user and join_password in the mesh block"
		if refused != "" {
			remedy = "see that join_user and join_password in the mesh block are those of a user there"
		}
		m.turn(MemberJoined, "whether the hub keeps its history here is not known: it shows nothing without a login"+refused, remedy)
		return
	}
	var see sight
	if err := m.see(s.ctx, &see); err != nil || s.ctx.Err() != nil {
		return
	}
	detail, remedy := see.obstacle(s.id(), m.name, m.hostID, time.Now())
	if detail != "" {
		m.turn(MemberPassedOver, m.hide(detail), remedy)
	} else {
		m.turn(MemberJoined, "", "")
	}
}

func (m *Member) loginRefused() string {
	m.web.mu.Lock()
	defer m.web.mu.Unlock()
	if m.web.refused == "" {
		return ""
	}
	return ", and refused ours: " + strings.TrimSuffix(printableLine(withoutSecrets(m.web.refused, m.web.password)), ".")
}

// flushBroke says once whether a flush may have ended early.
func (m *Member) flushBroke() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	was := m.broken
	m.broken = false
	return was
}

// failed notes that the hub could not be looked at.
func (m *Member) failed(err error) {
	text := m.hide(err.Error())
	m.count(func(v *MemberStatus) { v.LastError, v.LastErrorAt = text, time.Now() })
}

// lookAt reads a route, with a new login if the old one has run out.
func (m *Member) lookAt(ctx context.Context, path string, into any) (status int, err error) {
	status, err = m.web.ask(ctx, path, into)
	if err == nil && status == http.StatusUnauthorized && m.web.user != "" {
		if err = m.web.login(ctx); err == nil {
			status, err = m.web.ask(ctx, path, into)
		}
	}
	return status, err
}

// see reads what an obstacle could stand in. A route that the hub does not have shows none.
func (m *Member) see(ctx context.Context, into *sight) error {
	for _, route := range []struct {
		path string
		into any
	}{
		{"/Beacon", &into.beacons}, {"/Beacon/Affinity", &into.bindings}, {"/Ultravisor/Persistence/Status", &into.assignments},
	} {
		if _, err := m.lookAt(ctx, route.path, route.into); err != nil {
			if ctx.Err() == nil {
				m.failed(err)
			}
			return err
		}
	}
	return nil
}

// affinityKeys are the keys under which a hub asks for history.
var affinityKeys = map[string]string{"queue-persistence": "QueuePersistence", "manifest-store": "ManifestStore"}

// obstacle says what stands between a hub and this beacon, and what helps; "" for nothing.
func (s *sight) obstacle(id, name, hostID string, now time.Time) (detail, remedy string) {
	byID := map[string]*hubBeacon{}
	for i := range s.beacons {
		byID[s.beacons[i].BeaconID] = &s.beacons[i]
	}
	if me := byID[id]; me != nil && me.HostID != nil && *me.HostID != "" && *me.HostID != hostID {
		return fmt.Sprintf("the machine %q registers as %q too, and gets what is meant for this one", printable(*me.HostID), name),
			"give each of them a name of its own with `as` in the mesh block"
	}
	for _, family := range []string{"Queue", "Manifest"} {
		if a := s.assignments[family]; a.State != "" && a.State != "unassigned" {
			who := ""
			if a.AssignedBeaconID != nil {
				who = fmt.Sprintf(" %q", printable(*a.AssignedBeaconID))
			}
			return fmt.Sprintf("the hub's history is assigned to the databeacon%s (%s)", who, printable(a.State)),
				"clear the assignment: POST /Ultravisor/Persistence/Assign {\"BeaconID\": null} at the hub, then start the hub again"
		}
	}
	for i := range s.beacons {
		b := &s.beacons[i]
		if tag, tagged := b.Tags["PersistenceConnectionID"]; tagged && tag != nil && tag != "" && b.can("MeadowProxy") && b.Status != "Offline" {
			return fmt.Sprintf("the databeacon %q is tagged PersistenceConnectionID, and the hub takes it", printable(b.Name)),
				"take the tag off that databeacon, or disconnect it, then start the hub again"
		}
	}
	for _, capability := range persistence {
		i := slices.IndexFunc(s.beacons, func(b hubBeacon) bool { return b.can(capability) })
		if i >= 0 && s.beacons[i].BeaconID != id {
			return fmt.Sprintf("the beacon %q offers %s and comes before this one", printable(s.beacons[i].Name), capability),
				"stop that beacon; the hub takes the first one that is registered"
		}
	}
	for _, binding := range s.bindings {
		capability := affinityKeys[binding.AffinityKey]
		other := byID[binding.BeaconID]
		if capability == "" || other == nil || binding.BeaconID == id || expired(binding.ExpiresAt, now) {
			continue
		}
		return fmt.Sprintf("what the hub writes under %q is bound to the beacon %q until %s", binding.AffinityKey, printable(other.Name), printable(binding.ExpiresAt)),
			"stop that beacon, start the hub again, or wait until then"
	}
	return "", ""
}

func expired(at string, now time.Time) bool {
	t, err := time.Parse(time.RFC3339, at)
	return err == nil && !t.After(now)
}

// UnmarshalJSON takes what a hub shows of assignments, also one that shows something else there.
func (a *hubAssignment) UnmarshalJSON(text []byte) error {
	type plain hubAssignment
	_ = json.Unmarshal(text, (*plain)(a)) // what is no assignment assigns nothing
	return nil
}
