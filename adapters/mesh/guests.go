package mesh

import (
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/google/uuid"

	"holdfast/ports"
)

// A stock client that has no login, and a join secret, is let in over its socket. Over HTTP it has nothing but the cookie of a
// login, and one that is told 401 there asks for a login again every ten seconds for ever, without heartbeats. So a login without
// a password gets a cookie where a join secret would do: the cookie of a guest, who may do nothing. The join secret, in the
// registration over a socket that was opened with the cookie or in one over HTTP, makes the guest the beacon of that name, who
// may do what that beacon may: register, beat, ask for work, report, say goodbye.

// guest is one such cookie.
type guest struct {
	since  time.Time // when it was given, or last shown with the join secret
	beacon string    // who it is; "" for nobody yet
}

// guestWait is how long a guest may take to show the join secret.
const guestWait = 10 * time.Minute

// The routes of a guest.
const (
	notForGuests = iota
	forGuests    // of everybody who can show the join secret
	forBeacons   // of those who have shown it
)

// welcome gives a guest's cookie.
func (a *access) welcome(now time.Time) (id string) {
	id = uuid.NewString()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.guests) >= a.most {
		a.sendAway()
	}
	a.guests[sha256.Sum256([]byte(id))] = guest{since: now}
	return id
}

// sendAway makes room: the guest goes who came first, one that is nobody yet before every other.
func (a *access) sendAway() {
	var first [sha256.Size]byte
	var found *guest
	for id, g := range a.guests {
		if found == nil || (g.beacon == "") != (found.beacon == "") && g.beacon == "" || (g.beacon == "") == (found.beacon == "") && g.since.Before(found.since) {
			first, found = id, &g
		}
	}
	delete(a.guests, first)
}

// guest is that of a request's cookie.
func (a *access) guest(r *http.Request, now time.Time) (id [sha256.Size]byte, g guest, ok bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return id, g, false
	}
	id = sha256.Sum256([]byte(cookie.Value))
	a.mu.Lock()
	defer a.mu.Unlock()
	g, ok = a.guests[id]
	return id, g, ok && !a.outstayed(g, now)
}

func (a *access) outstayed(g guest, now time.Time) bool {
	if g.beacon == "" {
		return now.Sub(g.since) >= guestWait
	}
	return now.Sub(g.since) >= a.ttl
}

// admitGuest lets a guest's request in, where the route is one of a guest's.
func (a *access) admitGuest(r *http.Request, whose int, now time.Time) (visitor, error) {
	id, g, ok := a.guest(r, now)
	if !ok || whose == notForGuests || whose == forBeacons && g.beacon == "" {
		return visitor{}, errNoSession
	}
	return visitor{actor: g.beacon, mustJoin: true, guest: id, beacon: g.beacon}, nil
}

// lets says whether a visitor may register: one that must join shows the join secret each time.
func (a *access) lets(who visitor, r registration) error {
	if who.mustJoin && !a.joined(r.joinSecret) {
		return ports.InField(ports.Unauthorized, "JoinSecret", "is not the one that lets beacons in; log in, or ask the operator for it")
	}
	return nil
}

// isNow makes a guest the beacon that it has registered as.
func (a *access) isNow(who visitor, name string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, known := a.guests[who.guest]; known {
		a.guests[who.guest] = guest{since: now, beacon: name}
	}
}

// may says whether a visitor may speak for a beacon.
func (v *visitor) may(b *beacon) bool { return b != nil && (v.beacon == "" || v.beacon == b.name) }
