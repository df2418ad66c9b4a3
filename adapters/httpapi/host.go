package httpapi

import (
	"context"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// Host is what the API drives: a core.Host, seen through Over.
type Host interface {
	Begin(call core.Call) Promise

	Item(ctx context.Context, key string) core.Answer
	Items(ctx context.Context, q ports.ItemQuery) core.Answer
	Events(ctx context.Context, q ports.EventQuery) core.Answer
	Attempts(ctx context.Context, q ports.AttemptQuery) core.Answer
	Manifest(ctx context.Context, key string) core.Answer
	Manifests(ctx context.Context, q ports.ManifestQuery) core.Answer
	Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error)

	Ready() error
	Status() core.Status
	Survey(ctx context.Context) (ports.Survey, error)
	Write(f ports.Family, seq uint64) core.WriteStatus

	Asides() ([]core.AsideStatus, error)
	RetryAside(f ports.Family, key string) (int, error)
	DiscardAside(f ports.Family, key string) (core.AsideStatus, error)
	UnsettledKeys(backend string, f ports.Family, after string, limit int) ([]core.UnsettledStatus, error)
	RetryUnsettled(backend string, f ports.Family, key string) (int, error)
	DiscardUnsettled(backend string, f ports.Family, key string) error

	Resync(backend string) error
	ResyncExact(ctx context.Context, backend string, confirm int64, tell func(core.Progress)) (core.Exactness, error)
	Verify(ctx context.Context, a, b string, tell func(core.Progress)) (core.Verification, error)
	Copy(ctx context.Context, from, to string, tell func(core.Progress)) (core.Copied, error)
	Adopt(ctx context.Context, backend string, tell func(core.Progress)) (core.Adopted, error)

	AcceptLocal(adopt bool) error
	Assign(families []ports.Family, beacon string, connection int64) error
	Unassign(families []ports.Family) error
	Assignments() []core.AssignmentStatus
	Prune(ctx context.Context, before time.Time) (ports.Pruned, error)
}

// Promise is a call that was taken in; Wait gives its answer and is called once. Due says whether it would be given at once.
type Promise interface {
	Due() bool
	Wait(ctx context.Context) core.Answer
}

// Over gives a core as the API sees it.
func Over(h *core.Host) Host { return over{h} }

type over struct{ *core.Host }

func (o over) Begin(call core.Call) Promise { return o.Host.Begin(call) }
