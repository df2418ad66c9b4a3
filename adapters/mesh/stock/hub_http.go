package stock

// The routes of a hub that beacons use, and some of those by which one looks at it. Every answer is JSON.

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"crypto/rand"
)

// ServeHTTP serves sockets, on any path, and the routes.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		h.serveSocket(w, r)
		return
	}
	path := r.URL.Path
	if !h.permitted(r, path) {
		answer(w, http.StatusUnauthorized, outputs{"Error": "Authentication required.", "LoggedIn": false})
		return
	}
	body, err := readBody(r)
	if err != nil {
		answer(w, http.StatusBadRequest, outputs{"code": "InvalidContent", "message": "Invalid JSON: " + err.Error()})
		return
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	known := false
	for _, route := range routes {
		args, ok := fit(route.path, parts)
		if ok && route.method == r.Method {
			status, doc := route.serve(h, call{request: r, writer: w, args: args, body: body})
			answer(w, status, doc)
			return
		}
		known = known || ok
	}
	if known {
		answer(w, http.StatusMethodNotAllowed, outputs{"code": "MethodNotAllowed", "message": r.Method + " is not allowed"})
		return
	}
	answer(w, http.StatusNotFound, outputs{"code": "ResourceNotFound", "message": path + " does not exist"})
}

// call is one request for a route.
type call struct {
	request *http.Request
	writer  http.ResponseWriter
	args    []string
	body    members
}

func (c call) into(v any) bool { return json.Unmarshal(document(c.body), v) == nil }

type route struct {
	method, path string
	serve        func(h *Hub, c call) (status int, doc any)
}

var routes = []route{
	{http.MethodPost, "1.0/Authenticate", (*Hub).login},
	{http.MethodGet, "1.0/CheckSession", (*Hub).checkSession},
	{http.MethodGet, "status", (*Hub).status},
	{http.MethodPost, "Beacon/Register", (*Hub).registerRoute},
	{http.MethodPost, "Beacon/Work/Poll", (*Hub).pollRoute},
	{http.MethodPost, "Beacon/Work/Dispatch", (*Hub).dispatchRoute},
	{http.MethodPost, "Beacon/Work/*/Complete", (*Hub).completeRoute},
	{http.MethodPost, "Beacon/Work/*/Error", (*Hub).errorRoute},
	{http.MethodPost, "Beacon/Work/*/Progress", (*Hub).progressRoute},
	{http.MethodGet, "Beacon/Work/*/Events", (*Hub).eventsRoute},
	{http.MethodPost, "Beacon/*/Heartbeat", (*Hub).heartbeatRoute},
	{http.MethodGet, "Beacon", (*Hub).beaconsRoute},
	{http.MethodGet, "Beacon/Queue", (*Hub).queueRoute},
	{http.MethodGet, "Beacon/Affinity", (*Hub).affinityRoute},
	{http.MethodGet, "Beacon/Capabilities", (*Hub).capabilitiesRoute},
	{http.MethodGet, "Ultravisor/Persistence/Status", (*Hub).persistenceRoute},
	{http.MethodGet, "Manifest", (*Hub).manifestsRoute},
	{http.MethodGet, "Manifest/*", (*Hub).manifestRoute},
	{http.MethodGet, "Beacon/*", (*Hub).beaconRoute},
	{http.MethodDelete, "Beacon/*", (*Hub).deregisterRoute},
}

// fit matches a path; what stands for a star is given.
func fit(pattern string, parts []string) ([]string, bool) {
	wanted := strings.Split(pattern, "/")
	if len(wanted) != len(parts) {
		return nil, false
	}
	var args []string
	for i, part := range wanted {
		switch part {
		case "*":
			args = append(args, parts[i])
		case parts[i]:
		default:
			return nil, false
		}
	}
	return args, true
}

func readBody(r *http.Request) (members, error) {
	doc, err := io.ReadAll(r.Body)
	if err != nil || len(doc) == 0 {
		return members{}, err
	}
	var m members
	if err := json.Unmarshal(doc, &m); err != nil {
		return nil, err
	}
	return m, nil
}

func answer(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Server", "restify")
	w.Header().Set("Connection", "keep-alive")
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(doc)) // whoever asked may have left
}

func refusal(status int, message string) (int, any) { return status, outputs{"Error": message} }

// permitted applies the session rule: in secured mode, or once an Authentication beacon is there, most routes need a cookie.
func (h *Hub) permitted(r *http.Request, path string) bool {
	if path == "/" || path == "/status" || path == "/package" || path == "/Beacon/BootstrapAdmin" || strings.HasPrefix(path, "/1.0/") {
		return true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.config.Secured && h.first("Authentication") == nil {
		return true
	}
	user, _ := h.session(r)
	return user != ""
}

// session is who sends a request, by its cookie.
func (h *Hub) session(r *http.Request) (user, session string) {
	cookie, err := r.Cookie("SessionID")
	if err != nil {
		return "", ""
	}
	return h.sessions[cookie.Value], cookie.Value
}

func (h *Hub) login(c call) (int, any) {
	var in struct{ UserName, Password string }
	c.into(&in)
	user, err := h.check(in.UserName, in.Password)
	if err != nil {
		return http.StatusOK, outputs{"LoggedIn": false, "Error": err.Error()}
	}
	id := uuid()
	h.mu.Lock()
	h.sessions[id] = in.UserName
	h.mu.Unlock()
	c.writer.Header().Set("Set-Cookie", "SessionID="+id+"; Path=/; HttpOnly")
	return http.StatusOK, outputs{"LoggedIn": true, "SessionID": id, "UserID": user["IDUser"], "UserRecord": user}
}

// check asks who knows passwords: an Authentication beacon, by a work that is written about like any other.
func (h *Hub) check(name, password string) (map[string]any, error) {
	user := map[string]any{"LoginID": name, "IDUser": 1, "Roles": []string{}, "NameFirst": "", "NameLast": "", "FullName": name, "Email": ""}
	if name == "" {
		return nil, errors.New("username required") //nolint:err113 // the text of an answer
	}
	if a := h.config.Auth; a != nil {
		if known, ok := a.Users[name]; ok && same(known, password) {
			return user, nil
		}
		return nil, errors.New("Authentication failed.") //nolint:revive,staticcheck // the text is the stock hub's
	}
	h.mu.Lock()
	there := h.first("Authentication") != nil
	h.mu.Unlock()
	if there {
		o := h.Dispatch(Spec{
			Capability: "Authentication", Action: "AUTH_Login", AffinityKey: "auth", TimeoutMs: 5000,
			Settings: map[string]any{"Username": name, "Password": password},
		})
		if string(inside(o.Outputs)["Success"]) == "true" {
			return user, nil
		}
	}
	return nil, errors.New("Authentication failed.") //nolint:revive,staticcheck // likewise
}

func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	const digits = "0123456789abcdef"
	var s strings.Builder
	for i, v := range b {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			s.WriteByte('-')
		}
		s.WriteByte(digits[v>>4])
		s.WriteByte(digits[v&15])
	}
	return s.String()
}

func (h *Hub) checkSession(c call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	user, id := h.session(c.request)
	if user == "" {
		return http.StatusOK, outputs{"LoggedIn": false}
	}
	return http.StatusOK, outputs{"LoggedIn": true, "SessionID": id, "UserID": 1, "UserRecord": outputs{"LoginID": user}}
}

func (h *Hub) status(call) (int, any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	mode := "promiscuous"
	if h.config.Secured {
		mode = "authenticated"
	}
	return http.StatusOK, outputs{
		"Status": "Running", "ScheduleEntries": 0, "ScheduleRunning": false, "AuthEnabled": h.config.Secured, "AuthMode": mode,
		"SupportsUserManagement": h.first("Authentication") != nil,
	}
}
