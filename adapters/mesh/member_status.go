package mesh

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"errors"
	"strings"
	"time"
	"unicode"

	"github.com/coder/websocket"
)

// The states of a membership.
const (
	MemberConnecting = "connecting"  // the hub cannot be reached, or did not answer yet
	MemberRejected   = "rejected"    // the hub lets this beacon not in
	MemberJoined     = "joined"      // registered, and nothing stands in the way
	MemberPassedOver = "passed-over" // registered, but the hub keeps its history elsewhere
	MemberLeaving    = "leaving"
	MemberStopped    = "stopped"
)

// MemberStatus is how a membership stands, for people.
type MemberStatus struct {
	Hub      string // host:port
	Name     string // of our beacon there
	State    string
	Since    time.Time
	Detail   string `json:",omitempty"` // why it is not joined, or what could not be looked at
	Remedy   string `json:",omitempty"`
	BeaconID string `json:",omitempty"`

	CheckedAt time.Time `json:",omitzero"` // when the registration was last looked at
	InHand    int       // works that are being done
	Taken     uint64    // works that were pushed, since the start

	Refused          uint64 // of those, that were answered without Success
	Reported         uint64 // over a socket
	ReportedOverHTTP uint64 // since the socket was lost
	Unreported       uint64 // since the hub was away; it pushes them again
	RefusedFrames    uint64 // frames that no hub sends
	Registrations    uint64

	LastError   string    `json:",omitempty"` // why the last connection ended
	LastErrorAt time.Time `json:",omitzero"`
}

// Joined says whether the hub keeps its history here, as far as that can be seen.
func (s MemberStatus) Joined() bool { return s.State == MemberJoined }

// Status never waits for anybody.
func (m *Member) Status() MemberStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.view
}

func (m *Member) count(change func(*MemberStatus)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.view)
}

// turn changes the state; a change is logged, once.
func (m *Member) turn(state, detail, remedy string) {
	m.mu.Lock()
	changed := m.view.State != state || m.view.Detail != detail
	if m.view.State != state {
		m.view.Since = time.Now()
	}
	m.view.State, m.view.Detail, m.view.Remedy = state, detail, remedy
	if state == MemberConnecting || state == MemberRejected || state == MemberStopped {
		m.view.BeaconID = ""
	}
	m.mu.Unlock()
	if !changed {
		return
	}
	args := []any{"hub", m.hub, "beacon", m.name, "state", state}
	if detail != "" {
		args = append(args, "reason", detail)
	}
	switch state {
	case MemberJoined, MemberLeaving, MemberStopped:
		m.log.Info("the membership of a hub", args...)
	default:
		m.log.Warn("the membership of a hub", append(args, "remedy", remedy)...)
	}
}

// joined notes a registration. Whether the beacon was chosen is told by the look that follows, which knows better than this when
// the beacon had registered before.
func (m *Member) joined(id string) {
	if state := m.Status().State; state == MemberConnecting || state == MemberRejected {
		m.turn(MemberJoined, "", "")
	}
	m.count(func(v *MemberStatus) {
		v.BeaconID = id
		v.Registrations++
	})
}

// lostBecause notes why there is no connection.
func (m *Member) lostBecause(err error) {
	if err == nil {
		return
	}
	text := m.hide(err.Error())
	m.count(func(v *MemberStatus) { v.LastError, v.LastErrorAt = text, time.Now() })
	if _, no := errors.AsType[rejection](err); no {
		m.turn(MemberRejected, text, m.remedyForRejection())
		return
	}
	if _, strange := errors.AsType[*tls.CertificateVerificationError](err); strange {
		m.turn(MemberConnecting, text, "see that "+m.web.base+" is the hub's address as its certificate has it, and give its authority's certificate as join_ca in the mesh block where this machine does not trust it")
		return
	}
	m.turn(MemberConnecting, text, "see that the hub runs, and that "+m.web.base+" is its address; it is tried again and again")
}

func (m *Member) remedyForRejection() string {
	if m.secret == "" {
		return "give the hub's join secret as join_with in the mesh block"
	}
	return "see that join_with in the mesh block is the hub's join secret, and that its Authentication beacon is connected; it is tried again and again"
}

// lostSocket says why a socket ended.
func (m *Member) lostSocket(err error) error {
	switch code := websocket.CloseStatus(err); {
	case code == rejected:
		return rejection{"it closed the socket with 4403"}
	case code != -1:
		return errors.New("the hub closed the socket")
	}
	return errors.New("the connection to the hub broke")
}

func reasonOr(reason, usual string) string { return cmp.Or(reason, usual) }

// withoutSecrets takes secrets out of what somebody else said.
func withoutSecrets(text string, secrets ...string) string {
	for _, secret := range secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "...")
		}
	}
	return text
}

// printableLine is a peer's text as one line of bearable length.
func printableLine(text string) string {
	if len(text) > 300 {
		text = text[:300] + "..."
	}
	text = string(bytes.ToValidUTF8([]byte(text), []byte("?")))
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}
