package main

import (
	"context"

	"holdfast/internal/config"
	"holdfast/ports"
)

// alone starts a backend's plugin for one command, with no host around it.
func alone(ctx context.Context, in *invocation, cfg *config.Config, b *config.Backend) (ports.Backend, error) {
	if err := in.checkAlone(ctx, cfg, b); err != nil {
		return nil, err
	}
	h := house{dir: cfg.Data, log: in.logger(cfg)}
	p, err := h.plugin(cfg, b)
	if err != nil {
		return nil, err
	}
	p.Start()
	if err := p.Await(ctx); err != nil {
		_ = p.Close()
		return nil, err
	}
	return p, nil
}
