package mesh

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"holdfast/ports"
)

// Who may do what. An open hub lets everybody of this machine do everything; a secured one, which has users or a join secret,
// asks for a session cookie (wire contract A.4), and of sockets for one or for the join secret.

// access is the door of the hub.
type access struct {
	secured  bool
	users    map[string]hash
	nobody   hash // compared with where the user is unknown, so that the time does not tell
	join     [sha256.Size]byte
	joins    bool
	ttl      time.Duration
	most     int
	checking chan struct{} // hashing is expensive; so many at a time
	local    bool          // only this machine can reach us: foreign pages in its browsers must not
	cross    *http.CrossOriginProtection

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]session // by the hash of their id
	guests   map[[sha256.Size]byte]guest   // likewise
	known    map[string][sha256.Size]byte  // of a user: the last password that fitted, under a key of this process
	key      []byte
}

// session is one login.
type session struct {
	user  string
	since time.Time
}

func newAccess(c Config) (*access, error) {
	a := &access{
		secured: len(c.Users) > 0 || c.JoinSecret != "", users: map[string]hash{}, ttl: c.Timing.withUsual().SessionTTL,
		most: c.Limits.withUsual().Sessions, checking: make(chan struct{}, 4), local: c.Loopback, cross: http.NewCrossOriginProtection(),
		sessions: map[[sha256.Size]byte]session{}, guests: map[[sha256.Size]byte]guest{}, known: map[string][sha256.Size]byte{}, key: make([]byte, sha256.Size),
	}
	_, _ = rand.Read(a.key) // never fails
	if !a.secured && !c.Loopback {
		return nil, ports.Errorf(ports.Invalid, "mesh", "other machines can reach the listener; configure a user or a join secret, or listen on a loopback address")
	}
	if c.JoinSecret != "" {
		a.join, a.joins = sha256.Sum256([]byte(c.JoinSecret)), true
	}
	rounds := plainRounds
	for _, u := range c.Users {
		h, err := readHash(u)
		if err != nil {
			return nil, err
		}
		if _, twice := a.users[u.Name]; twice {
			return nil, ports.InField(ports.Invalid, "user "+u.Name, "is there twice")
		}
		a.users[u.Name], rounds = h, h.rounds
	}
	if a.secured {
		a.nobody = hash{rounds, make([]byte, saltBytes), make([]byte, sha256.Size)}
	}
	return a, nil
}

// login checks a password and begins a session. It fails with Unauthorized, and with Unavailable when too many ask at once.
func (a *access) login(ctx context.Context, user, password string, now time.Time) (id string, err error) {
	fits, err := a.fits(ctx, user, password)
	if err != nil {
		return "", err
	}
	if !fits {
		return "", ports.Errorf(ports.Unauthorized, "", "Authentication failed.")
	}
	id = uuid.NewString()
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.sessions) >= a.most {
		a.dropOldest()
	}
	a.sessions[sha256.Sum256([]byte(id))] = session{user, now}
	return id, nil
}

// fits compares a password, quickly when it is the one that fitted last.
func (a *access) fits(ctx context.Context, user, password string) (bool, error) {
	mac := hmac.New(sha256.New, a.key)
	_, _ = mac.Write([]byte(user + "\x00" + password))
	given := [sha256.Size]byte(mac.Sum(nil))
	h, known := a.users[user]
	if !known {
		h = a.nobody
	}
	a.mu.Lock()
	last, fitted := a.known[user]
	a.mu.Unlock()
	if fitted && subtle.ConstantTimeCompare(last[:], given[:]) == 1 {
		return true, nil
	}
	limit, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	select {
	case a.checking <- struct{}{}:
		defer func() { <-a.checking }()
	case <-limit.Done():
		return false, ports.Errorf(ports.Unavailable, "", "too many logins are being checked; try again in a moment")
	}
	if !h.fits(password) || !known {
		return false, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[user] = given
	return true, nil
}

func (a *access) dropOldest() {
	var oldest [sha256.Size]byte
	var since time.Time
	for id, s := range a.sessions {
		if since.IsZero() || s.since.Before(since) {
			oldest, since = id, s.since
		}
	}
	delete(a.sessions, oldest)
}

// sweep forgets the sessions that are over.
func (a *access) sweep(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.sessions {
		if now.Sub(s.since) >= a.ttl {
			delete(a.sessions, id)
		}
	}
	for id, g := range a.guests {
		if a.outstayed(g, now) {
			delete(a.guests, id)
		}
	}
}

// sessionCookie is the cookie's name.
const sessionCookie = "SessionID"

// session is that of a request's cookie.
func (a *access) session(r *http.Request, now time.Time) (id string, s session, ok bool) {
	cookie, err := r.Cookie(sessionCookie)
	if err != nil {
		return "", session{}, false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok = a.sessions[sha256.Sum256([]byte(cookie.Value))]
	if !ok || now.Sub(s.since) >= a.ttl {
		return "", session{}, false
	}
	return cookie.Value, s, true
}

// logout ends the session of a request's cookie.
func (a *access) logout(r *http.Request) {
	if cookie, err := r.Cookie(sessionCookie); err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.sessions, sha256.Sum256([]byte(cookie.Value)))
		delete(a.guests, sha256.Sum256([]byte(cookie.Value)))
	}
}

// visitor is who a request or a socket speaks for.
type visitor struct {
	actor     string            // the user, or "anonymous"
	sessionID string            // as a beacon record shows it; "" is null
	mustJoin  bool              // it has to show the join secret when it registers
	beacon    string            // the only one that it speaks for; "" for one that speaks for all
	guest     [sha256.Size]byte // by which cookie, for a guest
}

const anonymous = "anonymous"

// open says that everybody may come in: there is nobody to be told apart.
var open = visitor{actor: anonymous, sessionID: anonymous}

// admit says who asks, or why nothing is served. exempt routes ask for no session; some are those of guests.
func (a *access) admit(r *http.Request, exempt bool, whose int, now time.Time) (visitor, error) {
	if err := a.guard(r); err != nil {
		return visitor{}, err
	}
	if !a.secured {
		return open, nil
	}
	if id, s, ok := a.session(r, now); ok {
		return visitor{actor: s.user, sessionID: shown(id)}, nil
	}
	if exempt {
		return visitor{}, nil
	}
	return a.admitGuest(r, whose, now)
}

var errNoSession = ports.Errorf(ports.Unauthorized, "", "Authentication required.")

// shown is what others may see of a session's id: enough to tell two apart, too little to use it.
func shown(id string) string {
	if len(id) < 8 {
		return ""
	}
	return id[:8] + "..."
}

// admitSocket says who opens a socket, before it is one. A cookie that does not hold any more is refused, so that its client
// logs in again; none at all will do where the join secret can come in the registration.
func (a *access) admitSocket(r *http.Request, now time.Time) (visitor, error) {
	who, err := a.admit(r, false, forGuests, now)
	if errors.Is(err, errNoSession) && a.joins {
		if _, none := r.Cookie(sessionCookie); none != nil {
			return visitor{mustJoin: true}, nil
		}
	}
	if !a.secured {
		who.sessionID = "" // null, as the stock hub has it
	}
	return who, err
}

// joined says whether a registration shows the join secret.
func (a *access) joined(secret string) bool {
	given := sha256.Sum256([]byte(secret))
	return a.joins && subtle.ConstantTimeCompare(given[:], a.join[:]) == 1
}

// guard keeps foreign pages in a browser of this machine from using a hub that is open to the machine.
func (a *access) guard(r *http.Request) error {
	if !a.secured && a.local && !ours(r.Host) {
		return &refusal{http.StatusMisdirectedRequest, ports.Errorf(ports.Invalid, "", "the host name is not this machine's own; use 127.0.0.1 or localhost, or secure the hub")}
	}
	if err := a.cross.Check(r); err != nil {
		return &refusal{http.StatusForbidden, ports.Errorf(ports.Unauthorized, "", "a page of another site sent this (%v)", err)}
	}
	return nil
}

// ours says whether a Host header means this machine under a name that no foreign DNS can point here.
func ours(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}
