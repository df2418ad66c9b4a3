package main

import (
	"context"

	"holdfast/core"
	"holdfast/ports"
)

// repaired is what the stand-in's works come to.
type repaired struct {
	verification core.Verification
	copied       core.Copied
	adopted      core.Adopted
	onlyThere    int64
	fault        error
}

// mirrored is a status with a local store and one other backend.
func mirrored(followers ...core.FollowerStatus) core.Status {
	return core.Status{Ready: true, Backends: []core.BackendStatus{
		{Name: "local", Kind: "sqlite", Local: true, State: "bootstrapped"},
		{Name: "mirror", Kind: "sqlite", State: "bootstrapped", Followers: followers},
	}}
}

func (h *standIn) UnsettledKeys(backend string, f ports.Family, after string, limit int) (list []core.UnsettledStatus, err error) {
	for _, k := range h.keys {
		if k.Backend == backend && k.Family == f && k.Key > after && len(list) < limit {
			list = append(list, k)
		}
	}
	return list, nil
}

func (h *standIn) RetryUnsettled(backend string, f ports.Family, key string) (int, error) {
	h.orderf("retry %s %s %s", backend, f, key)
	return 1, nil
}

func (h *standIn) DiscardUnsettled(backend string, f ports.Family, key string) error {
	h.orderf("discard %s %s %s", backend, f, key)
	return nil
}

func (h *standIn) Resync(backend string) error {
	h.orderf("resync %s", backend)
	return h.repair.fault
}

func (h *standIn) ResyncExact(_ context.Context, backend string, confirm int64, tell func(core.Progress)) (core.Exactness, error) {
	h.orderf("exact %s %d", backend, confirm)
	tell(core.Progress{Family: ports.Queue, Looked: 5})
	e := core.Exactness{Backend: backend, OnlyThere: h.repair.onlyThere}
	switch {
	case confirm == e.OnlyThere:
		e.Removed = confirm
	case confirm >= 0:
		return e, ports.Errorf(ports.Conflict, "resync --exact", "%d records are only in %s, not %d; nothing was removed", e.OnlyThere, backend, confirm)
	}
	return e, h.repair.fault
}

func (h *standIn) Verify(_ context.Context, a, b string, tell func(core.Progress)) (core.Verification, error) {
	h.orderf("verify %s %s", a, b)
	tell(core.Progress{Family: ports.Queue, Looked: 5})
	return h.repair.verification, h.repair.fault
}

func (h *standIn) Copy(_ context.Context, from, to string, tell func(core.Progress)) (core.Copied, error) {
	h.orderf("copy %s %s", from, to)
	tell(core.Progress{Family: ports.Queue, Looked: 5})
	return h.repair.copied, h.repair.fault
}

func (h *standIn) Adopt(_ context.Context, backend string, tell func(core.Progress)) (core.Adopted, error) {
	h.orderf("adopt %s", backend)
	tell(core.Progress{Family: ports.Queue, Looked: 5})
	return h.repair.adopted, h.repair.fault
}
