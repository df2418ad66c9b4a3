package meadowproxy

import (
	"context"
	"net/http"
	"strconv"

	"holdfast/ports"
)

// What is sent for the records of a chunk whose identities are known. Nothing is believed but a row that is shown with its key:
// whatever else is answered, the record is looked up again and tried alone, and then the answer of that one request counts.

// write writes records once. Those that are not settled then are looked up again.
func (p *putting) write(ctx context.Context, targets []*target) {
	type group struct {
		post  bool
		actor string
	}
	groups := map[group][]*target{}
	var order []group
	for _, t := range targets {
		switch {
		case t.row.Gone:
			p.remove(ctx, t)
			continue
		case t.overtaken():
			t.settle(nil)
			continue
		case t.found != nil && t.found.deleted():
			if err := p.undelete(ctx, p.class, t.layout, t.id); err != nil {
				t.settle(err)
				continue
			}
		case t.id == 0 && t.taken && !p.elsewhere(t):
			t.settle(&ports.Error{
				Code: ports.Conflict, Op: opPut, Field: t.layout.natural,
				Message: "the database takes another row's key for this one's, and the form that tells them apart is taken as well",
			})
			continue
		}
		if t.failed > 0 {
			p.single(ctx, t)
			continue
		}
		g := group{t.id == 0, userName(t.row.First.Actor)}
		if groups[g] == nil {
			order = append(order, g)
		}
		groups[g] = append(groups[g], t)
	}
	for _, g := range order {
		if list := groups[g]; len(list) == 1 {
			p.single(ctx, list[0])
		} else {
			p.bulk(ctx, list, g.actor)
		}
	}
}

// overtaken says whether somebody wrote this state, or a later one of the same host, since the first try.
func (t *target) overtaken() bool {
	return t.failed > 0 && t.found != nil && !t.found.deleted() && t.row.Change.Host != "" && t.found.change.Host == t.row.Change.Host &&
		t.found.change.Seq >= t.row.Change.Seq
}

// elsewhere has a record stand under the other form of its key, if it has one.
func (p *putting) elsewhere(t *target) bool {
	if t.form+1 >= len(t.forms) {
		return false
	}
	t.form++
	t.taken = false
	return true
}

// text is what is sent for a record, once its parts are in.
func (p *putting) text(ctx context.Context, t *target) ([]byte, []part, error) {
	form := t.forms[t.form]
	switch {
	case t.found != nil:
		form = t.found.form
	case t.id > 0:
		form = t.forms[0]
	}
	body, parts := p.body(t.layout, t.row, t.sent, form, t.id)
	return body, parts, p.keep(ctx, p.class, parts)
}

// single writes one record alone.
func (p *putting) single(ctx context.Context, t *target) {
	body, parts, err := p.text(ctx, t)
	if err != nil {
		t.settle(err)
		return
	}
	base, err := p.base(t.layout.table.Name)
	if err != nil {
		t.settle(err)
		return
	}
	method := http.MethodPut
	if t.id == 0 {
		method = http.MethodPost
	}
	r, err := p.request(ctx, p.class, method, base, body, t.row.First.Actor)
	if err != nil {
		t.settle(err)
		return
	}
	if r.status == 200 {
		if s, err := t.layout.readRow(r.body); err == nil && t.shows(s) {
			p.stored(ctx, t, s, parts)
			return
		}
		p.failed(t, fault{status: 200, text: "the answer does not show the record"}, faultVague)
		return
	}
	f, m := r.readFault()
	p.failed(t, f, m)
}

// shows says whether an answer shows the record as it was sent.
func (t *target) shows(s *shown) bool {
	return s.id > 0 && (t.id == 0 || s.id == t.id) && t.isLike(s) && s.change == t.row.Change
}

// mostFailures is how often a record may fail alone before its fault is its own.
const mostFailures = 3

// failed says what becomes of a record whose write failed.
func (p *putting) failed(t *target, f fault, m meaning) {
	t.failed++
	switch m {
	case faultDuplicate:
		t.taken = t.id == 0
		if t.failed > mostFailures+len(t.forms) {
			t.settle(f.err(opPut, m))
			return
		}
	case faultVague, faultMissing:
		if t.failed >= mostFailures {
			if f.status == 200 {
				t.settle(ports.Errorf(ports.Internal, opPut, "the databeacon says that it wrote the record, and does not show it"))
				return
			}
			t.settle(f.err(opPut, m))
			return
		}
	default:
		t.settle(f.err(opPut, m))
		return
	}
	t.again(p.way)
}

// stored settles a record that is in.
func (p *putting) stored(ctx context.Context, t *target, s *shown, parts []part) {
	if t.found != nil {
		if err := p.release(ctx, p.class, t.found.parts, parts); err != nil {
			t.settle(err)
			return
		}
	}
	if len(parts) == 0 && s.form == t.forms[0] {
		p.known.learn(t.place, s.id)
	}
	t.settle(nil)
}

// bulk writes records that are all there, or all not, in one request.
func (p *putting) bulk(ctx context.Context, targets []*target, actor string) {
	base, err := p.base(targets[0].layout.table.Name)
	body := []byte{'['}
	all := make([][]part, len(targets))
	for i, t := range targets {
		if err != nil {
			break
		}
		var text []byte
		text, all[i], err = p.text(ctx, t)
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, text...)
	}
	method := http.MethodPut
	if targets[0].id == 0 {
		method = http.MethodPost
	}
	var r reply
	if err == nil {
		r, err = p.request(ctx, p.class, method, base+"s", append(body, ']'), actor)
	}
	if err != nil {
		for _, t := range targets {
			t.settle(err)
		}
		return
	}
	if f, m := r.readFault(); r.status != 200 && (m == faultForgotten || m == faultNotNow || m == faultDenied) {
		for _, t := range targets {
			t.settle(f.err(opPut, m))
		}
		return
	}
	items := bulkItems(&r)
	for i, t := range targets {
		if len(items) == len(targets) && p.taken(ctx, t, items[i], all[i]) {
			continue
		}
		t.failed++
		t.again(p.way)
	}
}

// taken settles a record of which a bulk answer says what became of it, and says so. What the row is refused for is told by a try of
// it alone; only what concerns all rows counts at once.
func (p *putting) taken(ctx context.Context, t *target, item []byte, parts []part) bool {
	s, err := t.layout.readRow(item)
	if err != nil {
		return false
	}
	if raw, refused := refusedItem(s); refused {
		f, m := rowFault(raw)
		switch m {
		case faultNotNow, faultFull, faultDenied, faultForgotten:
			t.settle(f.err(opPut, m))
			return true
		}
		t.taken = m == faultDuplicate && t.id == 0
		return false
	}
	if !t.shows(s) {
		return false
	}
	p.stored(ctx, t, s, parts)
	return true
}

// remove deletes a record. One that is not there is gone already.
func (p *putting) remove(ctx context.Context, t *target) {
	if t.id == 0 || t.found != nil && t.found.deleted() {
		p.known.drop(t.place)
		t.settle(nil)
		return
	}
	base, err := p.base(t.layout.table.Name)
	if err != nil {
		t.settle(err)
		return
	}
	r, err := p.request(ctx, p.class, http.MethodDelete, base+"/"+strconv.FormatInt(t.id, 10), nil, t.row.First.Actor)
	if err != nil {
		t.settle(err)
		return
	}
	f, m := r.readFault()
	switch {
	case r.status == 200:
		p.known.drop(t.place)
		var parts map[string]bundle
		if t.found != nil {
			parts = t.found.parts
		}
		t.settle(p.release(ctx, p.class, parts, nil))
	case m == faultMissing && t.failed < mostFailures: // its identity may be another one by now
		t.failed++
		t.again(p.way)
	default:
		t.settle(f.err(opPut, m))
	}
}

// undelete brings a row back that was deleted softly: it keeps its key, and nothing else can have it. One that is not deleted any more
// was brought back by somebody else.
func (w *way) undelete(ctx context.Context, class ports.WorkClass, l *layout, id int64) error {
	base, err := w.base(l.table.Name)
	if err != nil {
		return err
	}
	r, err := w.request(ctx, class, http.MethodGet, base+"/Undelete/"+strconv.FormatInt(id, 10), nil, "")
	if err != nil {
		return err
	}
	if f, m := r.readFault(); r.status != 200 && m != faultMissing {
		return f.err(opPut, m)
	}
	return nil
}
