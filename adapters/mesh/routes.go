package mesh

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// route is one row of the table of routes. A segment "*" is a key, which may hold anything; the router hands the last one over,
// unescaped.
type route struct {
	method string
	path   string
	exempt bool // needs no session (wire contract A.4)
	whose  int  // whether a guest's cookie will do
	serve  func(h *Hub, c *call)
}

// routes are those of the wire contract that the hub serves. A path goes to the first one that fits.
var routes = []route{
	{"POST", "/1.0/Authenticate", true, notForGuests, (*Hub).authenticate},
	{"GET", "/1.0/Authenticate/*/*", true, notForGuests, (*Hub).authenticateByPath},
	{"GET", "/1.0/CheckSession", true, notForGuests, (*Hub).checkSession},
	{"GET", "/1.0/Deauthenticate", true, notForGuests, (*Hub).deauthenticate},
	{"POST", "/1.0/Deauthenticate", true, notForGuests, (*Hub).deauthenticate},
	{"GET", "/status", true, notForGuests, (*Hub).status},
	{"GET", "/Beacon", false, notForGuests, (*Hub).beacons},
	{"POST", "/Beacon/Register", false, forGuests, (*Hub).register},
	{"GET", "/Beacon/Capabilities", false, notForGuests, (*Hub).capabilities},
	{"GET", "/Beacon/Actions", false, notForGuests, (*Hub).actions},
	{"GET", "/Beacon/Affinity", false, notForGuests, (*Hub).affinity},
	{"GET", "/Beacon/Queue", false, notForGuests, (*Hub).queue},
	{"GET", "/Beacon/Work", false, notForGuests, (*Hub).liveWorks},
	{"POST", "/Beacon/Work/Poll", false, forBeacons, (*Hub).poll},
	{"POST", "/Beacon/Work/Dispatch", false, notForGuests, (*Hub).dispatch},
	{"POST", "/Beacon/Work/DispatchStream", false, notForGuests, (*Hub).unbuilt},
	{"POST", "/Beacon/Work/Enqueue", false, notForGuests, (*Hub).unbuilt},
	{"POST", "/Beacon/Work/Complete/Batch", false, forBeacons, (*Hub).completeBatch},
	{"POST", "/Beacon/Work/Progress/Batch", false, forBeacons, (*Hub).progressBatch},
	{"POST", "/Beacon/Work/*/Complete", false, forBeacons, (*Hub).complete},
	{"POST", "/Beacon/Work/*/Error", false, forBeacons, (*Hub).fail},
	{"POST", "/Beacon/Work/*/Progress", false, forBeacons, (*Hub).tellProgress},
	{"POST", "/Beacon/Work/*/Upload", false, forBeacons, (*Hub).upload},
	{"POST", "/Beacon/Work/*/Cancel", false, notForGuests, (*Hub).unbuilt},
	{"POST", "/Beacon/Work/*/Reorder", false, notForGuests, (*Hub).unbuilt},
	{"POST", "/Beacon/Run/Start", false, notForGuests, (*Hub).unbuilt},
	{"POST", "/Beacon/Run/*/End", false, notForGuests, (*Hub).unbuilt},
	{"GET", "/Beacon/Work/*/Events", false, notForGuests, (*Hub).events},
	{"POST", "/Beacon/*/Heartbeat", false, forBeacons, (*Hub).heartbeat},
	{"GET", "/Beacon/*", false, notForGuests, (*Hub).beacon},
	{"DELETE", "/Beacon/*", false, forBeacons, (*Hub).deregister},
	{"GET", "/Manifest", false, notForGuests, (*Hub).manifests},
	{"POST", "/Manifest/Batch", false, notForGuests, (*Hub).manifestBatch},
	{"GET", "/Manifest/*", false, notForGuests, (*Hub).manifest},
	{"POST", "/Ultravisor/Persistence/Assign", false, notForGuests, (*Hub).assign},
	{"GET", "/Ultravisor/Persistence/Status", false, notForGuests, (*Hub).persistence},
}

// call is one request at work.
type call struct {
	w   http.ResponseWriter
	r   *http.Request
	who visitor
	key string // what stands for "*" in the path
}

// Handler serves the hub's routes, and sockets on any path.
func (h *Hub) Handler() http.Handler { return h.Beside(http.HandlerFunc(notFound)) }

// Beside serves the hub's routes and sockets, and leaves everything else to another handler on the same listener.
func (h *Hub) Beside(other http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
			h.upgrade(w, r)
		case belongs(r.URL.Path):
			h.route(w, r)
		default:
			other.ServeHTTP(w, r)
		}
	})
}

// belongs says whether a path is below one of the hub's.
func belongs(path string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return slices.Contains([]string{"1.0", "status", "Beacon", "Manifest", "Ultravisor"}, first)
}

// How long a peer may take: to send a small body, and to take an answer.
const (
	readTimeout   = 30 * time.Second
	answerTimeout = 30 * time.Second
)

// route serves a request by the table.
func (h *Hub) route(w http.ResponseWriter, r *http.Request) {
	row, key, allowed := match(r)
	if row == nil {
		if len(allowed) == 0 {
			notFound(w, r)
			return
		}
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		send(w, http.StatusMethodNotAllowed, errorBody("MethodNotAllowed", "this path takes "+strings.Join(allowed, " and ")))
		return
	}
	who, err := h.access.admit(r, row.exempt, row.whose, h.clock())
	if err != nil {
		refuse(w, err)
		return
	}
	row.serve(h, &call{w, r, who, key})
}

// match finds the row of a request, or the methods that its path takes.
func match(r *http.Request) (row *route, key string, allowed []string) {
	segments := strings.Split(strings.TrimSuffix(r.URL.EscapedPath(), "/"), "/")
	for i := range routes {
		found, fits := fit(routes[i].path, segments)
		switch {
		case !fits:
		case routes[i].method == r.Method || routes[i].method == http.MethodGet && r.Method == http.MethodHead:
			return &routes[i], found, nil
		case !slices.Contains(allowed, routes[i].method):
			allowed = append(allowed, routes[i].method)
		}
	}
	return nil, "", allowed
}

func fit(pattern string, segments []string) (key string, fits bool) {
	want := strings.Split(pattern, "/")
	if len(want) != len(segments) {
		return "", false
	}
	for i, segment := range segments {
		plain, err := url.PathUnescape(segment)
		switch {
		case err != nil:
			return "", false
		case want[i] == "*" && plain != "":
			key = plain
		case want[i] != plain:
			return "", false
		}
	}
	return key, true
}

func notFound(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusNotFound, errorBody("ResourceNotFound", "no such path"))
}

// errorBody is an error as the stock hub's web server writes it, with the member that its clients read.
func errorBody(code, message string) []byte {
	return newObject(200).str("code", code).str("message", message).str("Error", message).done()
}

// body reads a request's body, which must be a JSON object; an empty one counts as {}. done is called when nothing of it is
// needed any more.
func (h *Hub) body(c *call, limit int64) (text []byte, done func(), err error) {
	if c.r.ContentLength > limit {
		return nil, nil, ports.OverLimit("body", "bytes", limit, c.r.ContentLength)
	}
	in := &patient{c.r, http.NewResponseController(c.w)}
	_ = in.deadlines.SetReadDeadline(time.Now().Add(readTimeout)) // a test's recorder has none
	text, passage, err := h.lanes.read(c.r.Context(), in, limit, new(flag))
	switch code := ports.CodeOf(err); {
	case err == nil:
	case code == ports.TooLarge || code == ports.Unavailable:
		passage.leave()
		c.w.Header().Set("Connection", "close")
		return nil, nil, err
	default:
		passage.leave()
		return nil, nil, ports.InField(ports.Invalid, "body", "breaks off or came too slowly")
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{})
	if len(text) == 0 {
		text = []byte("{}")
	}
	if err := ports.ScanObject(text, maxFrameDepth, nil); err != nil {
		passage.leave()
		return nil, nil, &refusal{http.StatusBadRequest, ports.InField(ports.Invalid, "body", "%s", err.Error())}
	}
	return text, passage.leave, nil
}

// patient reads a body and moves the deadline with each piece; lanes ask for a pace.
type patient struct {
	r         *http.Request
	deadlines *http.ResponseController
}

func (p *patient) Read(b []byte) (int, error) {
	n, err := p.r.Body.Read(b)
	_ = p.deadlines.SetReadDeadline(time.Now().Add(readTimeout))
	return n, err
}
