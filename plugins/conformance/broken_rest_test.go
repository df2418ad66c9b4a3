package conformance

import (
	"context"

	"holdfast/ports"
)

// Stores that walk, count or prune wrongly; of no local store, so that the cases for every backend have to find them.
var restDefects = []defect{
	{
		name: "exports nothing", found: []string{"export/put"},
		of: func(right whole) *broken {
			return &broken{whole: lame{whole: right, export: func(context.Context, ports.ExportQuery) (ports.Page, error) { return ports.Page{}, nil }}, describe: onlyFollows}
		},
	},
	{
		name: "prunes nothing", found: []string{"prune/put"},
		of: func(right whole) *broken {
			return &broken{whole: lame{whole: right, prune: func(context.Context, ports.PruneQuery) (ports.Pruned, error) { return ports.Pruned{}, nil }}, describe: onlyFollows}
		},
	},
	{
		name: "counts nothing", found: []string{"survey/put"},
		of: func(right whole) *broken {
			return &broken{whole: lame{whole: right, survey: func(context.Context) (ports.Survey, error) { return ports.Survey{}, nil }}, describe: onlyFollows}
		},
	},
}

// onlyFollows takes a local store for one that is none.
func onlyFollows(d ports.Description) ports.Description {
	var powers []string
	for _, p := range d.Powers {
		if p != "LocalStore" {
			powers = append(powers, p)
		}
	}
	d.Powers = powers
	return d
}

// lame does something else in the powers of one method.
type lame struct {
	whole
	export func(ctx context.Context, q ports.ExportQuery) (ports.Page, error)
	prune  func(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error)
	survey func(ctx context.Context) (ports.Survey, error)
}

func (l lame) Export(ctx context.Context, q ports.ExportQuery) (ports.Page, error) {
	if l.export != nil {
		return l.export(ctx, q)
	}
	return l.whole.Export(ctx, q)
}

func (l lame) Prune(ctx context.Context, q ports.PruneQuery) (ports.Pruned, error) {
	if l.prune != nil {
		return l.prune(ctx, q)
	}
	return l.whole.Prune(ctx, q)
}

func (l lame) Survey(ctx context.Context) (ports.Survey, error) {
	if l.survey != nil {
		return l.survey(ctx)
	}
	return l.whole.Survey(ctx)
}
