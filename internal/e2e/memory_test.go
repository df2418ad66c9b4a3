package e2e_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"holdfast/ports"
)

// memory is a local store that forgets everything at its end: the rules of a real one without its disk, so that a whole
// host fits into a test's process.
type memory struct {
	mu    sync.Mutex
	rules ports.Rules
	nonce string
	marks map[ports.Family]ports.Mark
	last  map[ports.Family]map[uint64]ports.Decision // for a lost reply
	rows  map[string]stored
	gone  map[string]bool
}

type stored struct {
	row  ports.Row
	held *ports.Held
}

func newMemory() *memory {
	return &memory{marks: map[ports.Family]ports.Mark{}, last: map[ports.Family]map[uint64]ports.Decision{}, rows: map[string]stored{}, gone: map[string]bool{}}
}

func place(k ports.Kind, parts ...any) string { return fmt.Sprint(append([]any{k}, parts...)...) }

func (s *memory) at(place string) (*ports.Held, error) { return s.rows[place].held, nil }

// look is the store as Decide sees it.
type look struct{ *memory }

func (l look) Item(key string) (*ports.Held, error)   { return l.at(place(ports.KindItem, key)) }
func (l look) Event(guid string) (*ports.Held, error) { return l.at(place(ports.KindEvent, guid)) }
func (l look) Attempt(key string, n int64) (*ports.Held, error) {
	return l.at(place(ports.KindAttempt, key, "/", n))
}
func (l look) Manifest(key string) (*ports.Held, error) { return l.at(place(ports.KindManifest, key)) }
func (l look) Gone(k ports.Kind, key string) (bool, error) {
	return l.gone[place(k, key)], nil
}

func (s *memory) Describe(context.Context) (ports.Description, error) {
	return ports.Description{Kind: "memory", Families: ports.Families, Powers: ports.PowersOf(s)}, nil
}
func (s *memory) Probe(context.Context, ports.Family) error { return nil }
func (s *memory) Close() error                              { return nil }
func (s *memory) Position(context.Context, ports.Family) (ports.Position, error) {
	return ports.Position{}, nil
}
func (s *memory) Put(context.Context, ports.Batch) (ports.Applied, error) {
	return ports.Applied{}, ports.Errorf(ports.Unimplemented, "memory", "takes decisions only")
}

func (s *memory) Stand(context.Context, string) (ports.Standing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return ports.Standing{StoreID: "memory", Empty: len(s.rows) == 0, Nonce: s.nonce, Marks: maps.Clone(s.marks)}, nil
}

func (s *memory) Open(_ context.Context, o ports.Opening) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nonce, s.rules = o.Next, ports.Rules{HostID: o.HostID, Retention: o.Retention}
	for f, seq := range o.Resume {
		s.marks[f] = ports.Mark{Epoch: o.Epochs[f].ID, Seq: seq}
	}
	return nil
}

type decided []ports.Decision

func (d decided) Wait(context.Context) ([]ports.Decision, error) { return d, nil }

func (s *memory) Commit(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var decisions decided
	switch at := s.marks[b.Family].Seq; {
	case b.Through <= at:
		for _, e := range b.Entries {
			decisions = append(decisions, s.last[b.Family][e.Seq])
		}
		return decisions, nil
	case at != b.After:
		return nil, ports.Errorf(ports.Conflict, "memory: commit", "the batch is after %d, the store at %d", b.After, at)
	}
	s.last[b.Family] = map[uint64]ports.Decision{}
	for i := range b.Entries {
		effect, err := ports.Decide(&b.Entries[i], look{s}, s.rules)
		if err != nil {
			return nil, err
		}
		s.apply(effect)
		s.last[b.Family][b.Entries[i].Seq] = effect.Decision
		decisions = append(decisions, effect.Decision)
	}
	s.marks[b.Family] = ports.Mark{Epoch: b.Epoch, Seq: b.Through}
	return decisions, nil
}

// Early says that nothing waits: this store is for hosts that joined no hub.
func (look) Early(string) ([]ports.Entry, int, error) { return nil, 0, nil }

func (s *memory) apply(e ports.Effect) {
	at := place(e.Kind, e.Key)
	switch e.Kind {
	case ports.KindEvent:
		at = place(e.Kind, e.GUID)
	case ports.KindAttempt:
		at = place(e.Kind, e.Key, "/", e.Number)
	}
	if e.Revive {
		delete(s.gone, at)
	}
	switch {
	case e.Bury:
		delete(s.rows, at)
		s.gone[at] = true
	case e.Next != nil:
		s.rows[at] = stored{held: e.Next, row: ports.Row{
			Kind: e.Kind, Key: e.Key, GUID: e.GUID, Number: e.Number, Body: e.Next.Record.JSON(), First: e.Next.First, Change: e.Next.Change,
		}}
	}
}

func (s *memory) one(place string) (ports.Row, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.rows[place]
	if !ok {
		return ports.Row{}, ports.Errorf(ports.NotFound, "memory", "there is none")
	}
	return found.row, nil
}

// page gives rows of a kind in the order of their cursors.
func (s *memory) page(kind ports.Kind, key string, desc bool, after *ports.Cursor, limit int, of func(ports.Row) ports.Cursor) (ports.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := func(a, b ports.Cursor) int {
		n := cmp.Or(strings.Compare(a.Sort, b.Sort), strings.Compare(a.Key, b.Key), cmp.Compare(a.Num, b.Num))
		if desc {
			return -n
		}
		return n
	}
	var page ports.Page
	for _, r := range s.rows {
		if r.row.Kind == kind && (key == "" || r.row.Key == key) && (after == nil || order(of(r.row), *after) > 0) {
			page.Rows = append(page.Rows, r.row)
		}
	}
	slices.SortFunc(page.Rows, func(a, b ports.Row) int { return order(of(a), of(b)) })
	if len(page.Rows) > limit {
		page.Rows = page.Rows[:limit]
		next := of(page.Rows[limit-1])
		page.Next = &next
	}
	return page, nil
}

func (s *memory) Item(_ context.Context, key string) (ports.Row, error) {
	return s.one(place(ports.KindItem, key))
}

func (s *memory) Manifest(_ context.Context, key string) (ports.Row, error) {
	return s.one(place(ports.KindManifest, key))
}

func (s *memory) Items(_ context.Context, q ports.ItemQuery) (ports.Page, error) {
	return s.page(ports.KindItem, "", q.Desc, q.After, q.Limit, func(r ports.Row) ports.Cursor {
		return ports.Cursor{Sort: r.First.EnqueuedKey, Key: r.Key}
	})
}

func (s *memory) Events(_ context.Context, q ports.EventQuery) (ports.Page, error) {
	return s.page(ports.KindEvent, q.Key, q.Desc, q.After, q.Limit, func(r ports.Row) ports.Cursor {
		return ports.Cursor{Sort: r.First.OrderKey, Key: r.GUID}
	})
}

func (s *memory) Attempts(_ context.Context, q ports.AttemptQuery) (ports.Page, error) {
	return s.page(ports.KindAttempt, q.Key, false, q.After, q.Limit, func(r ports.Row) ports.Cursor { return ports.Cursor{Num: r.Number} })
}

func (s *memory) Manifests(_ context.Context, q ports.ManifestQuery) (ports.Page, error) {
	return s.page(ports.KindManifest, "", q.Desc, q.After, q.Limit, func(r ports.Row) ports.Cursor {
		return ports.Cursor{Sort: r.First.OrderKey, Key: r.Key}
	})
}

func (s *memory) Changes(context.Context, ports.ChangesQuery) (ports.ChangePage, error) {
	return ports.ChangePage{}, ports.Errorf(ports.Unimplemented, "memory", "nobody follows it")
}
