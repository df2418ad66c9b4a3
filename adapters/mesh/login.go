package mesh

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"holdfast/ports"
)

// The routes of login (wire contract A.3). A wrong password is a 200 that says so: the client goes on without a cookie. None at
// all makes a guest where the join secret would do: a stock client takes the cookie unless LoggedIn is false.

func (h *Hub) authenticate(c *call) {
	text, done, err := h.body(c, h.limits.Small)
	if err != nil {
		refuse(c.w, err)
		return
	}
	defer done()
	var user, password string
	_ = ports.ScanObject(text, maxFrameDepth, func(name, value []byte) error { // body checked it
		switch string(name) {
		case `"UserName"`, `"username"`:
			user = textOf(value)
		case `"Password"`, `"password"`:
			password = textOf(value)
		}
		return nil
	})
	h.logIn(c, user, password)
}

// authenticateByPath is the same with both in the path, which old tools use.
func (h *Hub) authenticateByPath(c *call) {
	segments := strings.Split(strings.TrimSuffix(c.r.URL.EscapedPath(), "/"), "/")
	user, _ := url.PathUnescape(segments[len(segments)-2]) // the router has tried
	h.logIn(c, user, c.key)
}

func (h *Hub) logIn(c *call, user, password string) {
	if h.access.joins && password == "" { // nobody's is empty
		cookie(c, h.access.welcome(h.clock()))
		send(c.w, http.StatusOK, newObject(200).raw("LoggedIn", []byte("null")).str("Error", "Authentication failed.").done())
		return
	}
	id, err := "", error(ports.Errorf(ports.Unauthorized, "", "Authentication failed."))
	if h.access.secured {
		id, err = h.access.login(c.r.Context(), user, password, h.clock())
	}
	switch {
	case ports.CodeOf(err) == ports.Unauthorized:
		if h.access.secured {
			h.warn(printable(user), "a login failed", "user", printable(user), "from", c.r.RemoteAddr)
		}
		send(c.w, http.StatusOK, newObject(100).boolean("LoggedIn", false).str("Error", ports.AsError(err).Message).done())
		return
	case err != nil:
		refuse(c.w, err)
		return
	}
	cookie(c, id)
	send(c.w, http.StatusOK, loggedIn(id, user))
}

func cookie(c *call, id string) {
	http.SetCookie(c.w, &http.Cookie{Name: sessionCookie, Value: id, Path: "/", HttpOnly: true, Secure: c.r.TLS != nil, SameSite: http.SameSiteLaxMode})
}

func loggedIn(id, user string) []byte {
	record := newObject(200).str("LoginID", user).number("IDUser", 0).strs("Roles", nil).str("NameFirst", "").str("NameLast", "").
		str("FullName", user).str("Email", "").done()
	return newObject(400).boolean("LoggedIn", true).str("SessionID", id).str("UserID", user).raw("UserRecord", record).done()
}

func (h *Hub) checkSession(c *call) {
	id, s, ok := h.access.session(c.r, h.clock())
	if !ok {
		send(c.w, http.StatusOK, []byte(`{"LoggedIn":false}`))
		return
	}
	send(c.w, http.StatusOK, loggedIn(id, s.user))
}

func (h *Hub) deauthenticate(c *call) {
	h.access.logout(c.r)
	http.SetCookie(c.w, &http.Cookie{Name: sessionCookie, Path: "/", HttpOnly: true, Expires: time.Unix(0, 0)})
	send(c.w, http.StatusOK, []byte(`{"LoggedIn":false}`))
}
