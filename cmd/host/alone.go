package main

import (
	"context"

	"holdfast/internal/config"
	"holdfast/ports"
)

// alone starts a backend's plugin for one command, with no host around it.
func alone(ctx context.Context, in *invocation, cfg *config.Config, b *config.Backend) (ports.Backend, error) {
	options, err := in.options(ctx, cfg, b)
	if err != nil {
		return nil, err
	}
	h := house{dir: cfg.Data, log: in.logger(cfg)}
	p, err := h.plugin(b, options, 0)
	if err != nil {
		return nil, err
	}
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}
