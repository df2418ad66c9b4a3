package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"

	"holdfast/ports"
)

// Role is what a caller may do; each includes those before it.
type Role int

const (
	RoleNone  Role = iota // what everybody may see: whether the host lives, and the empty page
	RoleRead              // history and status
	RoleWrite             // send writes
	RoleAdmin             // operate
)

var roleNames = []string{"none", "read", "write", "admin"}

func (r Role) String() string { return roleNames[r] }

// Token lets a caller in.
type Token struct {
	Name   string
	Role   string // read, write or admin
	Secret string
}

// caller is who asks.
type caller struct {
	name string
	role Role
}

// anonymous is everybody on this machine while no tokens are configured.
var anonymous = caller{"anonymous", RoleAdmin}

// keyring knows the tokens by the hash of their secrets, so that no comparison depends on a secret's length.
type keyring []key

type key struct {
	caller
	hash [sha256.Size]byte
}

func newKeyring(tokens []Token) (keyring, error) {
	var ring keyring
	for _, t := range tokens {
		k := key{caller: caller{name: t.Name}, hash: sha256.Sum256([]byte(t.Secret))}
		for role := RoleRead; role <= RoleAdmin; role++ {
			if t.Role == role.String() {
				k.role = role
			}
		}
		if k.role == RoleNone || t.Secret == "" {
			return nil, ports.InField(ports.Invalid, "token "+t.Name, "needs a secret and one of the roles read, write and admin")
		}
		ring = append(ring, k)
	}
	return ring, nil
}

// identify tells who sends a request.
func (ring keyring) identify(r *http.Request) (caller, error) {
	if len(ring) == 0 {
		return anonymous, nil
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return caller{}, unauthorized("send a token: Authorization: Bearer SECRET")
	}
	hash, who := sha256.Sum256([]byte(strings.TrimSpace(secret))), caller{}
	for i := range ring {
		if subtle.ConstantTimeCompare(ring[i].hash[:], hash[:]) == 1 {
			who = ring[i].caller
		}
	}
	if who.role == RoleNone {
		return caller{}, unauthorized("the token is not known here")
	}
	return who, nil
}

func unauthorized(message string) error {
	return &refusal{http.StatusUnauthorized, ports.Errorf(ports.Unauthorized, "", "%s", message)}
}

func forbidden(who caller, need Role) error {
	return &refusal{http.StatusForbidden, ports.Errorf(ports.Unauthorized, "", "the token %q has the role %s; this needs the role %s", who.name, who.role, need)}
}

// guard keeps other sites' pages in a browser on this machine from using a host that is open to the machine. With tokens
// there is nothing that a browser would add by itself, and so nothing to guard.
type guard struct {
	on    bool
	cross *http.CrossOriginProtection
}

func newGuard(on bool) guard { return guard{on, http.NewCrossOriginProtection()} }

func (g guard) check(r *http.Request) error {
	if !g.on {
		return nil
	}
	if !local(r.Host) {
		return &refusal{http.StatusMisdirectedRequest, ports.Errorf(ports.Invalid, "",
			"the host name %q is not this machine's own; use 127.0.0.1 or localhost, or configure a token", printable(r.Host))}
	}
	if err := g.cross.Check(r); err != nil {
		return &refusal{http.StatusForbidden, ports.Errorf(ports.Unauthorized, "", "a page of another site sent this (%v); configure a token", err)}
	}
	return nil
}

// local says whether a Host header means this machine under a name that no foreign DNS can point here.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// printable cuts a caller's text for a message.
func printable(text string) string {
	if len(text) > 64 {
		text = text[:64] + "..."
	}
	return strings.ToValidUTF8(text, "?")
}
