package meadowproxy

import (
	"bytes"
	"context"
	"net/http"
	"slices"
	"strconv"

	"holdfast/ports"
)

// The parts of large texts in UVHoldfast: written before the row that names them, fetched with it, removed after it.

var partsLayout = &layout{table: own, identity: own.Engine[0].Name, natural: own.Key}

// partValue is the column that has the text of a part.
var partValue = own.Members[1].Name

// How many parts are written and read in one request.
const (
	partsWritten = 32
	partsRead    = 64
)

// standing gives the parts that are there, by key, the deleted ones too.
func (w *way) standing(ctx context.Context, class ports.WorkClass, keys []string) (map[string]*shown, error) {
	there := map[string]*shown{}
	for len(keys) > 0 {
		n := min(len(keys), mostKeys)
		a := ask{class: class, layout: partsLayout, columns: []string{own.Key, "Deleted"}, limit: n * alikeAtMost}
		a.filter.any(own.Key, keys[:n])
		a.filter.deletedToo()
		a.filter.by(false, partsLayout.identity)
		if err := w.each(ctx, &a, func(s *shown) { there[s.key] = s }); err != nil {
			return nil, err
		}
		keys = keys[n:]
	}
	return there, nil
}

// keep stores parts, which others may be storing at the same moment: equal keys have equal texts.
func (w *way) keep(ctx context.Context, class ports.WorkClass, parts []part) error {
	if len(parts) == 0 {
		return nil
	}
	base, err := w.base(ownTable)
	if err != nil {
		return err
	}
	there, err := w.standing(ctx, class, keysOf(parts))
	if err != nil {
		return err
	}
	var absent, left, present []part
	for _, p := range parts {
		switch s := there[p.key]; {
		case s == nil:
			absent = append(absent, p)
		case s.deleted():
			left = append(left, p)
		default: // by a Put that was broken off, which goes on here
			present = append(present, p)
		}
	}
	for some := range slices.Chunk(present, partsRead) {
		texts := map[string]string{}
		if err := w.texts(ctx, class, keysOf(some), texts); err != nil {
			return err
		}
		for _, p := range some {
			if texts[p.key] != p.text {
				left = append(left, p)
			}
		}
	}
	for some := range slices.Chunk(absent, partsWritten) {
		failed, err := w.keepMany(ctx, class, base, some)
		if err != nil {
			return err
		}
		left = append(left, failed...)
	}
	for _, p := range left {
		if err := w.keepOne(ctx, class, base, p, there[p.key]); err != nil {
			return err
		}
	}
	return nil
}

func keysOf(parts []part) []string {
	keys := make([]string, len(parts))
	for i, p := range parts {
		keys[i] = p.key
	}
	return keys
}

// keepMany stores new parts in one request, and gives those that the answer does not show.
func (w *way) keepMany(ctx context.Context, class ports.WorkClass, base string, parts []part) (failed []part, err error) {
	body := []byte{'['}
	for i, p := range parts {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(p.members(append(body, '{')), '}')
	}
	r, err := w.request(ctx, class, http.MethodPost, base+"s", append(body, ']'), "")
	if err != nil {
		return nil, err
	}
	items := bulkItems(&r)
	for i, p := range parts {
		if len(items) != len(parts) || !p.shownIn(items[i]) {
			failed = append(failed, p)
		}
	}
	return failed, nil
}

func (p part) members(dst []byte) []byte {
	dst = ports.AppendQuoted(append(dst, `"`+own.Key+`":`...), p.key)
	return ports.AppendQuoted(append(dst, `,"`+partValue+`":`...), p.text)
}

func (p part) shownIn(item []byte) bool {
	s, err := partsLayout.readRow(item)
	if err != nil {
		return false
	}
	_, refused := refusedItem(s)
	return !refused && s.id > 0 && s.key == p.key && alike(s.column(partValue), p.text)
}

func (w *way) keepOne(ctx context.Context, class ports.WorkClass, base string, p part, there *shown) error {
	for failed := 0; ; failed++ {
		method, body := http.MethodPost, []byte{'{'}
		if there != nil {
			if there.deleted() {
				if err := w.undelete(ctx, class, partsLayout, there.id); err != nil {
					return err
				}
			}
			method = http.MethodPut
			body = strconv.AppendInt(append(body, `"`+partsLayout.identity+`":`...), there.id, 10)
			body = append(body, ',')
		}
		body = append(p.members(body), '}')
		r, err := w.request(ctx, class, method, base, body, "")
		if err != nil {
			return err
		}
		f, m := r.readFault()
		if r.status == 200 {
			if p.shownIn(r.body) {
				return nil
			}
			f, m = fault{status: 200, text: "the answer does not show the part"}, faultVague
		}
		if m != faultDuplicate && m != faultVague && m != faultMissing || failed == mostFailures {
			return f.err(opPut, m)
		}
		seen, err := w.standing(ctx, class, []string{p.key})
		if err != nil {
			return err
		}
		there = seen[p.key]
	}
}

// release removes the parts that a row named before, but for those that it names still. Their text goes first: the interface only
// marks rows as deleted.
func (w *way) release(ctx context.Context, class ports.WorkClass, before map[string]bundle, now []part) error {
	if len(before) == 0 {
		return nil
	}
	base, err := w.base(ownTable)
	if err != nil {
		return err
	}
	needed := map[string]bool{}
	for _, p := range now {
		needed[p.key] = true
	}
	var keys []string
	for _, b := range before {
		for _, key := range b.keys() {
			if !needed[key] {
				keys = append(keys, key)
			}
		}
	}
	there, err := w.standing(ctx, class, keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		s := there[key]
		if s == nil || s.deleted() {
			continue
		}
		id := strconv.FormatInt(s.id, 10)
		emptied := append(append([]byte(`{"`+partsLayout.identity+`":`), id...), `,"`+partValue+`":""}`...)
		for _, step := range []struct {
			method, path string
			body         []byte
		}{{http.MethodPut, base, emptied}, {http.MethodDelete, base + "/" + id, nil}} {
			r, err := w.request(ctx, class, step.method, step.path, step.body, "")
			if err != nil {
				return err
			}
			if f, m := r.readFault(); r.status != 200 && m != faultMissing {
				return f.err(opPut, m)
			}
		}
	}
	return nil
}

// complete fetches what of rows is in parts. Without bodies only Extra is needed of them, and the columns that are no opaque ones.
// A row whose parts are not there was replaced since: it must be read again, which again says.
func (w *way) complete(ctx context.Context, class ports.WorkClass, rows []*shown, lean bool) (again bool, err error) {
	for {
		wanted := map[string]string{}
		var keys []string
		for _, s := range rows {
			for name, b := range s.parts {
				if _, open := s.large(name); !open || lean && s.layout.opaque(name) {
					continue
				}
				keys = append(keys, b.keys()...)
			}
		}
		if len(keys) == 0 {
			return false, nil
		}
		for some := range slices.Chunk(keys, partsRead) {
			if err := w.texts(ctx, class, some, wanted); err != nil {
				return false, err
			}
		}
		for _, s := range rows {
			for name := range s.parts {
				b, open := s.large(name)
				if !open || lean && s.layout.opaque(name) {
					continue
				}
				text, whole := b.join(wanted)
				if !whole {
					return true, nil
				}
				if s.pieces == nil {
					s.pieces = map[string]string{}
				}
				s.pieces[name] = text
			}
			if err := s.unfold(); err != nil {
				return false, err
			}
		}
	}
}

// texts reads parts.
func (w *way) texts(ctx context.Context, class ports.WorkClass, keys []string, into map[string]string) error {
	a := ask{class: class, layout: partsLayout, limit: len(keys) * alikeAtMost}
	a.filter.any(own.Key, keys)
	a.filter.by(false, partsLayout.identity)
	return w.each(ctx, &a, func(s *shown) { into[s.key] = s.column(partValue) })
}

// join puts a text together.
func (b bundle) join(parts map[string]string) (text string, whole bool) {
	var all bytes.Buffer
	for _, key := range b.keys() {
		piece, ok := parts[key]
		if !ok || piece == "" {
			return "", false
		}
		all.WriteString(piece)
	}
	return all.String(), true
}

// opaque says whether a list without bodies leaves a column out.
func (l *layout) opaque(name string) bool {
	if name == l.whole {
		return true
	}
	for i := range l.table.Members {
		if l.table.Members[i].Name == name {
			return l.table.Members[i].Type == ports.Opaque
		}
	}
	return false
}
