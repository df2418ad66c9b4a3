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
	AcceptLocal(adopt bool) error
	Prune(ctx context.Context, before time.Time) (ports.Pruned, error)
}

// Promise is a call that was taken in; Wait gives its answer and is called once.
type Promise interface {
	Wait(ctx context.Context) core.Answer
}

// Over gives a core as the API sees it.
func Over(h *core.Host) Host { return over{h} }

type over struct{ *core.Host }

func (o over) Begin(call core.Call) Promise { return o.Host.Begin(call) }
