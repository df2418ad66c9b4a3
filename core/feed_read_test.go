package core

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"holdfast/ports"
)

// What reads of the feed's test may answer.

// read reads something at random.
func (f *feed) read(n, m int) {
	keys := append(slices.Clone(feedKeys), otherKeys...)
	key := keys[m%len(keys)]
	began := time.Now()
	switch n % 6 {
	case 0:
		f.sees(ports.KindItem, key, func() Answer { return f.host.Item(f.t.Context(), key) })
	case 1:
		f.sees(ports.KindManifest, key, func() Answer { return f.host.Manifest(f.t.Context(), key) })
	case 2:
		f.lists(ports.KindEvent, key, func(c *ports.Cursor) Answer {
			return f.host.Events(f.t.Context(), ports.EventQuery{Key: key, After: c, Limit: 1 + m, Bodies: true})
		})
	case 3:
		f.lists(ports.KindAttempt, key, func(c *ports.Cursor) Answer {
			return f.host.Attempts(f.t.Context(), ports.AttemptQuery{Key: key, After: c, Limit: 1 + m})
		})
	case 4:
		f.lists(ports.KindItem, "", func(c *ports.Cursor) Answer {
			return f.host.Items(f.t.Context(), ports.ItemQuery{After: c, Limit: 1 + m, Desc: m%2 == 0, Bodies: true})
		})
	case 5:
		f.lists(ports.KindManifest, "", func(*ports.Cursor) Answer {
			return f.host.Manifests(f.t.Context(), ports.ManifestQuery{Limit: 500, Bodies: true})
		})
	}
	if took := time.Since(began); took > 40*patience {
		f.t.Errorf("%s: reads took %s", f.moment, took)
	}
}

// timed asks, and holds the answer to its time.
func (f *feed) timed(ask func() Answer) Answer {
	began := time.Now()
	a := ask()
	if took := time.Since(began); took > patience {
		f.t.Errorf("%s: a read took %s", f.moment, took)
	}
	return a
}

// sees reads one record and compares it with what it was when the read began.
func (f *feed) sees(k ports.Kind, key string, ask func() Answer) {
	before := f.before(k.Family(), key)
	a := f.timed(ask)
	if a.Stale || a.Incomplete || a.Situation == Unavailable {
		return
	}
	f.decided(before)
	if a.Situation == NotFound {
		f.fits(before, place{kind: k, key: key}, a.Backend, nil)
		return
	}
	f.fits(before, place{kind: k, key: key}, a.Backend, a.Value)
}

// outlook is what was acknowledged when a read began.
type outlook struct {
	family ports.Family
	head   uint64 // of the journal
	need   uint64 // what the read must reflect at least
}

func (f *feed) before(family ports.Family, key string) outlook {
	o := outlook{family: family, head: f.journals[family].Bounds().Head}
	if o.need = o.head; key != "" {
		o.need = f.last[string(family)+key]
	}
	return o
}

// decided checks that the local store has decided what a read reflects.
func (f *feed) decided(before outlook) {
	f.store.mu.Lock()
	reach := f.store.disk.annals.reach[before.family]
	f.store.mu.Unlock()
	if before.need > reach {
		f.t.Errorf("%s: a read is answered as fresh although %d is not decided: the local store never was beyond %d", f.moment, before.need, reach)
	}
}

// fits checks that what was read of a place, nil for nothing, is the state that it had when the read began, or a later one, and
// that the backend has not shown a later one before.
func (f *feed) fits(before outlook, at place, backend string, body []byte) {
	past := f.store.ever(at)
	if len(past) == 0 && f.store.void(at) {
		return // it never was, but for a backend that has it still
	}
	least := -1
	for i, v := range past {
		if v.change.Host == f.state.who.ID && v.change.Seq <= before.head {
			least = i
		}
	}
	first, last := -1, -1
	for i := max(least, 0); i < len(past); i++ {
		v := past[i]
		shows := !v.gone && body != nil && string(shown(ports.Row{Kind: at.kind, Body: []byte(v.body), First: v.first})) == string(body)
		if v.gone && body == nil || shows {
			if last = i; first < 0 {
				first = i
			}
		}
	}
	if first < 0 && body == nil && least < 0 {
		return // nobody says that it must be there
	}
	if first < 0 {
		f.t.Errorf("%s: %s gives %v as %s when at least state %d of %d had to be read:%s", f.moment, backend, at, body, least, len(past), listed(past))
		return
	}
	mark := fmt.Sprint(backend, at)
	if seen, known := f.seen[mark]; known && last < seen {
		f.t.Errorf("%s: %s shows state %d of %v after state %d", f.moment, backend, last, at, seen)
	}
	f.seen[mark] = max(f.seen[mark], first)
}

func listed(past []version) (text string) {
	for i, v := range past {
		text += fmt.Sprintf("\n%d: %s of %.8s %d", i, v.body, v.change.Host, v.change.Seq)
	}
	return text
}

// lists reads a list to its end, and compares each record with what it was when the read began.
func (f *feed) lists(k ports.Kind, key string, ask func(*ports.Cursor) Answer) {
	before := f.before(k.Family(), key)
	got := map[place]string{}
	backend := map[place]string{}
	by := ""
	for cursor, n := (*ports.Cursor)(nil), 0; n == 0 || cursor != nil; n++ {
		a := f.timed(func() Answer { return ask(cursor) })
		if a.Stale || a.Incomplete || a.Situation != Done {
			return
		}
		f.decided(before)
		by = a.Backend
		err := ports.ScanItems(a.Value, func(item []byte) {
			at := placeOfBody(k, item)
			if _, twice := got[at]; twice {
				f.t.Errorf("%s: %v stands twice in a list of %s", f.moment, at, a.Backend)
			}
			got[at], backend[at] = string(item), a.Backend
		})
		if err != nil {
			f.t.Fatal(err)
		}
		if cursor, err = ports.ParseCursor(a.Cursor); err != nil {
			f.t.Fatal(err)
		}
		if cursor != nil && n%4 == 3 {
			f.in(5 * time.Millisecond)
		}
	}
	for at, body := range got {
		f.fits(before, at, backend[at], []byte(body))
	}
	for _, at := range f.store.places(k, key) {
		if _, listed := got[at]; !listed {
			f.fits(before, at, by, nil)
		}
	}
}

// places gives where records of a kind and key ever were.
func (m *memory) places(k ports.Kind, key string) (list []place) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at, past := range m.disk.annals.past {
		if at.kind == k && len(past) > 0 && (key == "" || past[0].key == key) {
			list = append(list, at)
		}
	}
	return list
}

// placeOfBody finds the place of a record as a caller sees it.
func placeOfBody(k ports.Kind, body []byte) place {
	table := ports.TableOf(k)
	r, err := ports.ParseRecord(table, body)
	if err != nil {
		return place{kind: k, key: err.Error()}
	}
	number, _ := strconv.ParseInt(string(r.Get("AttemptNumber")), 10, 64) // of an attempt
	return placeOf(k, r.Text(table.Key), r.Text("EventGUID"), max(number, 0))
}
