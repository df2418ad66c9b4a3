package httpapi

import (
	"context"

	"holdfast/core"
	"holdfast/ports"
)

// What the fake host does about other backends.

func (h *fakeHost) UnsettledKeys(backend string, f ports.Family, after string, limit int) (list []core.UnsettledStatus, err error) {
	for _, k := range h.keys {
		if k.Backend == backend && k.Family == f && k.Key > after && len(list) < limit {
			list = append(list, k)
		}
	}
	return list, nil
}

func (h *fakeHost) RetryUnsettled(backend string, f ports.Family, key string) (int, error) {
	h.ask([3]string{backend, string(f), key}, "")
	return 5, nil
}

func (h *fakeHost) DiscardUnsettled(backend string, f ports.Family, key string) error {
	h.ask([3]string{backend, string(f), key}, "")
	return nil
}

func (h *fakeHost) Resync(backend string) error {
	h.ask("resync "+backend, "")
	return nil
}

func (h *fakeHost) lasts(ctx context.Context, tell func(core.Progress)) error {
	if h.work == nil {
		return nil
	}
	return h.work(ctx, tell)
}

func (h *fakeHost) ResyncExact(ctx context.Context, backend string, confirm int64, tell func(core.Progress)) (core.Exactness, error) {
	h.ask(confirm, "")
	e := core.Exactness{Backend: backend, OnlyThere: 3}
	switch {
	case confirm == e.OnlyThere:
		e.Removed = 3
	case confirm >= 0:
		return e, ports.Errorf(ports.Conflict, "resync --exact", "3 records are only in %s, not %d; nothing was removed", backend, confirm)
	}
	return e, h.lasts(ctx, tell)
}

func (h *fakeHost) Verify(ctx context.Context, a, b string, tell func(core.Progress)) (core.Verification, error) {
	return core.Verification{A: a, B: b, Compared: 7, Different: 1, Differences: []core.Difference{{Family: ports.Queue, Kind: ports.KindItem, Key: "a", Members: []string{"Status"}}}}, h.lasts(ctx, tell)
}

func (h *fakeHost) Copy(ctx context.Context, from, to string, tell func(core.Progress)) (core.Copied, error) {
	return core.Copied{From: from, To: to, Looked: 9, Put: 2}, h.lasts(ctx, tell)
}

func (h *fakeHost) Adopt(ctx context.Context, backend string, tell func(core.Progress)) (core.Adopted, error) {
	return core.Adopted{Backend: backend, Looked: 4, Taken: 1}, h.lasts(ctx, tell)
}
