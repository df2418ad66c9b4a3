package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/process"
	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// running is the host at work.
type running struct {
	api       *httpapi.API
	mesh      *crossing
	member    *membership
	host      *core.Host
	local     *process.Process
	followers []*process.Process
	log       hclog.Logger

	refused func(error) error // says where in the configuration the reason stands for which the local store does not start
}

// How long each step of a stop may take; together at most ten seconds.
const (
	answersLimit = 5500 * time.Millisecond // net/http waits 5 s for connections on which nothing was asked yet
	drainLimit   = 3500 * time.Millisecond
)

// until runs everything until ctx ends or the listener fails, and stops it in order.
func (r running) until(ctx context.Context, listener net.Listener) error {
	for _, f := range r.followers {
		f.Start()
	}
	r.local.Start()
	if err := r.local.Await(ctx); ports.CodeOf(err).Permanent() {
		return exitcode.With(exitcode.Environment, errors.Join(r.refused(err), r.stopPlugins()))
	}
	work, rest := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- r.host.Run(work) }()
	r.member.start()
	server := r.api.Server()
	server.Handler = r.mesh.beside(r.api)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
	}
	r.log.Info("stopping")
	r.api.Drain()
	r.member.goodbye()
	limit, cancel := context.WithTimeout(context.Background(), answersLimit)
	defer cancel()
	r.mesh.rest(limit)
	if err := server.Shutdown(limit); err != nil {
		failed = errors.Join(failed, fmt.Errorf("some answers were still due after %s: %w", answersLimit, err), server.Close())
	}
	r.member.rest(limit)
	rest()
	failed = errors.Join(failed, <-worked, r.stopPlugins())
	if failed != nil {
		return exitcode.With(exitcode.Failed, failed)
	}
	r.log.Info("stopped")
	return nil
}

// stopPlugins stops all of them at the same time, now that nothing calls them any more.
func (r running) stopPlugins() error {
	drain, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	errs := make([]error, len(r.followers)+1)
	var wg sync.WaitGroup
	wg.Go(func() { errs[len(r.followers)] = r.local.Stop(drain) })
	for i, f := range r.followers {
		wg.Go(func() { errs[i] = f.Stop(drain) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
