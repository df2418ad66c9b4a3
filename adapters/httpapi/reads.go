package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/ports"
)

// Reads of history. Lists of items and of manifests come newest first; what belongs to one item comes in the order in which it
// happened.

func (a *API) items(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	q := ports.ItemQuery{
		Filter: ports.ItemFilter{
			Status: p.list("status"), Capability: p.text("capability"), Action: p.text("action"),
			RunID: p.text("run_id"), RunHash: p.text("run_hash"), OperationHash: p.text("operation_hash"),
			AssignedBeaconID: p.text("assigned_beacon_id"), AffinityKey: p.text("affinity_key"), ErrorText: p.text("error"),
			From: bound(p, "since", ports.KeyOfTime), To: bound(p, "until", ports.KeyOfTime),
		},
		OrderBy: orderBy(p), Desc: p.desc(true), After: p.cursor(), Limit: p.limit(), Bodies: p.flag("bodies"),
	}
	if q.OrderBy != "" && q.After != nil {
		p.fault(ports.InField(ports.Invalid, "cursor", "goes with the order of EnqueuedAt only; leave out order_by"))
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	respond(w, a.host.Items(patient(r), q))
}

// bound gives a time as the key that it is compared with, "" without one.
func bound(p *params, name string, key func(time.Time) string) string {
	at, given := p.moment(name)
	if !given {
		return ""
	}
	return key(at)
}

// orderBy gives the column of another order than that of enqueueing, "" for that.
func orderBy(p *params) string {
	name := p.text("order_by")
	if name == "" || name == "EnqueuedAt" {
		return ""
	}
	if _, known := ports.Items.Place([]byte(name)); !known {
		columns := make([]string, len(ports.Items.Members))
		for i, c := range ports.Items.Members {
			columns[i] = c.Name
		}
		p.fault(ports.InField(ports.Invalid, "order_by", "%q is no column of a work item%s", printable(name), hint(name, columns)))
	}
	return name
}

func (a *API) item(w http.ResponseWriter, r *http.Request, _ caller) {
	if key, ok := pathKey(w, r, paramsOf(r)); ok {
		respond(w, a.host.Item(patient(r), key))
	}
}

func (a *API) events(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	q := ports.EventQuery{Desc: p.desc(false), After: p.cursor(), Limit: p.limit(), Bodies: p.flag("bodies")}
	var ok bool
	if q.Key, ok = pathKey(w, r, p); ok {
		respond(w, a.host.Events(patient(r), q))
	}
}

func (a *API) attempts(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	q := ports.AttemptQuery{After: p.cursor(), Limit: p.limit()}
	var ok bool
	if q.Key, ok = pathKey(w, r, p); ok {
		respond(w, a.host.Attempts(patient(r), q))
	}
}

func (a *API) manifests(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	q := ports.ManifestQuery{
		OperationHash: p.text("operation_hash"), Status: p.list("status"),
		From: bound(p, "since", orderKeyOf), To: bound(p, "until", orderKeyOf),
		Desc: p.desc(true), After: p.cursor(), Limit: p.limit(), Bodies: p.flag("bodies"),
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	respond(w, a.host.Manifests(patient(r), q))
}

// orderKeyOf is the least OrderKey of a moment.
func orderKeyOf(at time.Time) string { return fmt.Sprintf("%014d", max(at.UnixMilli(), 0)) }

func (a *API) manifest(w http.ResponseWriter, r *http.Request, _ caller) {
	if key, ok := pathKey(w, r, paramsOf(r)); ok {
		respond(w, a.host.Manifest(patient(r), key))
	}
}

// pathKey gives the key in the path, which may hold any character when it is escaped, and checks the rest of the query. It
// answers itself when something is wrong.
func pathKey(w http.ResponseWriter, r *http.Request, p *params) (key string, ok bool) {
	key, _ = r.Context().Value(keyInPath{}).(string)
	switch points := utf8.RuneCountInString(key); {
	case !utf8.ValidString(key):
		p.fault(ports.InField(ports.Invalid, "hash", "is not valid UTF-8"))
	case strings.IndexByte(key, 0) >= 0:
		p.fault(ports.InField(ports.Invalid, "hash", "has a NUL character; no key has one"))
	case points > ports.MaxKeyPoints:
		p.fault(ports.OverLimit("hash", "code points", ports.MaxKeyPoints, int64(points)))
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return "", false
	}
	return key, true
}

// familyOf reads a family in a path or a query: queue or manifest.
func familyOf(text string) (ports.Family, error) {
	i := slices.IndexFunc(ports.Families, func(f ports.Family) bool { return strings.EqualFold(string(f), text) })
	if i < 0 {
		return "", ports.InField(ports.Invalid, "family", "%q is neither queue nor manifest", printable(text))
	}
	return ports.Families[i], nil
}
