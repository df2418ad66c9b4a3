package meadowproxy

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// behind is a databeacon with a way to it.
type behind struct {
	t    testing.TB
	d    *stock.Databeacon
	mesh *stock.Mesh
	id   int64
	w    *way
	seq  uint64
}

func newBehind(t testing.TB, o stock.Options) *behind {
	t.Helper()
	if o.Name == "" {
		o.Name = "db"
	}
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	d, err := stock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	mesh := stock.NewMesh()
	t.Cleanup(func() {
		mesh.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &behind{t: t, d: d, mesh: mesh}
	if b.id, err = d.AddConnection("UV Store", filepath.Join(o.Dir, "store.sqlite"), true); err != nil {
		t.Fatal(err)
	}
	mesh.Connect(d)
	b.w = b.way()
	return b
}

// way bootstraps, as another host would.
func (b *behind) way() *way {
	b.t.Helper()
	is, err := b.mesh.Watch(b.t.Context(), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	bound, err := fit(b.t.Context(), b.mesh, seat{b.d.Name(), is.List[0].Session, b.id}, 3, time.Minute)
	if err != nil {
		b.t.Fatal(err)
	}
	return bound.way
}

const someHost = "0b5d7c1e-4a6f-4f3b-9d2c-8e1a7f60c3b2"

// row makes the next state of a record, with members beside those that name it.
func (b *behind) row(kind ports.Kind, key string, n int, members string) ports.Row {
	b.seq++
	e := ports.Entry{Seq: b.seq, ReceivedMs: 1796004734800 + int64(b.seq), Host: someHost[:8]}
	r := ports.Row{Kind: kind, Key: key, Change: ports.Change{Host: someHost, Seq: b.seq}}
	r.First = ports.First{ReceivedAt: e.ReceivedAt(), OrderKey: e.OrderKey(), Actor: "ops", Origin: ports.OriginHTTP}
	quoted := string(ports.AppendQuoted(nil, key))
	body := `"WorkItemHash":` + quoted
	switch kind {
	case ports.KindItem:
		r.First.EnqueuedKey, _ = ports.TimeKey(e.ReceivedAt())
	case ports.KindEvent:
		r.GUID, r.First.EmittedAt = guidOf(key, n), e.ReceivedAt()
		body += fmt.Sprintf(`,"EventGUID":%q`, r.GUID)
	case ports.KindAttempt:
		r.Number = int64(n)
		body += fmt.Sprintf(`,"AttemptNumber":%d`, n)
	case ports.KindManifest:
		body = `"Hash":` + quoted
	}
	if members != "" {
		body += "," + members
	}
	r.Body = []byte("{" + body + "}")
	return r
}

// guidOf is the GUID of the n-th event of a key.
func guidOf(key string, n int) string {
	sum := sha256.Sum256([]byte(key))
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", sum[:4], n)
}

func (b *behind) put(rows ...ports.Row) {
	b.t.Helper()
	b.putBy(b.w, rows...)
}

func (b *behind) putBy(w *way, rows ...ports.Row) {
	b.t.Helper()
	if done, err := w.put(b.t.Context(), rows, ports.ClassLive); err != nil || done != len(rows) {
		b.t.Fatalf("put of %d rows: done %d, %v", len(rows), done, err)
	}
}

// read gives the record of a row, whatever its kind; nil when it is not there.
func (b *behind) read(ctx context.Context, r ports.Row) (*ports.Row, error) {
	var got ports.Row
	var err error
	var page ports.Page
	switch r.Kind {
	case ports.KindItem:
		got, err = b.w.item(ctx, r.Key)
	case ports.KindManifest:
		got, err = b.w.manifest(ctx, r.Key)
	case ports.KindEvent:
		page, err = b.w.events(ctx, ports.EventQuery{Key: r.Key, Bodies: true, Limit: 5000})
	case ports.KindAttempt:
		page, err = b.w.attempts(ctx, ports.AttemptQuery{Key: r.Key, Limit: 5000})
	}
	if ports.CodeOf(err) == ports.NotFound {
		return nil, nil
	}
	if err != nil || r.Kind == ports.KindItem || r.Kind == ports.KindManifest {
		return &got, err
	}
	for i := range page.Rows {
		if page.Rows[i].GUID == r.GUID && page.Rows[i].Number == r.Number {
			return &page.Rows[i], nil
		}
	}
	return nil, nil
}

// has asks for each row whether exactly it is there.
func (b *behind) has(when string, rows ...ports.Row) {
	b.t.Helper()
	for _, want := range rows {
		got, err := b.read(b.t.Context(), want)
		switch {
		case err != nil:
			b.t.Errorf("%s: %s %q: %v", when, want.Kind, want.Key, err)
		case got == nil:
			b.t.Errorf("%s: %s %q is not there", when, want.Kind, want.Key)
		default:
			if d := difference(want, *got); d != "" {
				b.t.Errorf("%s: %s %q: %s", when, want.Kind, want.Key, d)
			}
		}
	}
}

func (b *behind) lacks(when string, rows ...ports.Row) {
	b.t.Helper()
	for _, r := range rows {
		if got, err := b.read(b.t.Context(), r); err != nil || got != nil {
			b.t.Errorf("%s: %s %q is there (%v)", when, r.Kind, r.Key, err)
		}
	}
}

// difference says how two rows differ, "" where they do not.
func difference(want, got ports.Row) string {
	if want.Kind != got.Kind || want.Key != got.Key || want.GUID != got.GUID || want.Number != got.Number {
		return fmt.Sprintf("it is %s %q %q %d", got.Kind, got.Key, got.GUID, got.Number)
	}
	if want.First != got.First {
		return fmt.Sprintf("its first write is %+v, want %+v", got.First, want.First)
	}
	if want.Change != got.Change {
		return fmt.Sprintf("its change is %+v, want %+v", got.Change, want.Change)
	}
	t := ports.TableOf(want.Kind)
	a, err := ports.ParseRecord(t, want.Body)
	if err != nil {
		return err.Error()
	}
	g, err := ports.ParseRecord(t, got.Body)
	if err != nil {
		return err.Error()
	}
	if !a.Same(g) || want.Kind == ports.KindManifest && string(want.Body) != string(got.Body) {
		return fmt.Sprintf("it is %.300s, want %.300s", got.Body, want.Body)
	}
	return ""
}

// count asks the database itself.
func (b *behind) count(query string, args ...any) (n int) {
	b.t.Helper()
	if err := b.d.Database(b.id).QueryRow(query, args...).Scan(&n); err != nil {
		b.t.Fatal(err)
	}
	return n
}

// requests counts works that go to the databeacon, by method and route, until the test ends.
func (b *behind) requests() func() map[string]int {
	counts := make(chan map[string]int, 1)
	counts <- map[string]int{}
	b.d.Fault(func(_, _ string, settings json.RawMessage) (string, bool) {
		var s struct{ Method, Path string }
		_ = json.Unmarshal(settings, &s) // what is no request has neither
		parts := strings.Split(s.Path, "/")
		if len(parts) > 4 {
			parts = parts[:5]
		}
		m := <-counts
		m[s.Method+" "+strings.Join(parts[min(3, len(parts)):], "/")]++
		counts <- m
		return "", false
	})
	return func() map[string]int {
		m := <-counts
		defer func() { counts <- m }()
		return m
	}
}
