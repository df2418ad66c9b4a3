package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/httpapi"
	"holdfast/adapters/journal"
	"holdfast/adapters/process"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// serveCommand is `holdfast serve`: it puts the parts together, runs them and stops them in order.
//
//	lock the data directory -> state -> journals -> the local store's plugin -> core -> HTTP
//
// Stopping goes the other way round: no more intake, due answers given, the core at rest, the plugin drained, the journals
// synced.
type serveCommand struct {
	Listen string `placeholder:"HOST:PORT" help:"Where to listen ($$HOLDFAST_LISTEN)."`
	Data   string `placeholder:"DIR" help:"The data directory ($$HOLDFAST_DATA)."`
}

func (serveCommand) Help() string {
	return "Serves until SIGTERM or an interrupt, then stops in order within ten seconds. Without a configuration it listens on 127.0.0.1:8420 and keeps its history with SQLite in ./data. Exit code 0 after an orderly stop, 1 when the stop had to be cut short, 2 for a mistake in the configuration, 3 when the machine stands in the way (the port or the data directory is taken, a plugin does not start)."
}

func (s serveCommand) Run(in *invocation) error {
	cfg, err := in.load(map[string]string{"listen": s.Listen, "data": s.Data})
	if err != nil {
		return err
	}
	if err := cfg.Err(cfg.CheckServed()); err != nil {
		return err
	}
	log := in.logger(cfg)
	options, err := in.options(cfg, cfg.LocalBackend())
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("listen on %s: %w; stop what listens there or set another address with --listen", cfg.Listen, err))
	}
	defer listener.Close()
	house, err := open(cfg, log)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer house.close()
	local, err := house.plugin(cfg.LocalBackend(), options)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	host, err := core.New(core.Config{
		Version: version(), Ack: core.Ack(cfg.Ack), Retention: cfg.Retention, State: house.state, Journals: house.ports(),
		Local: core.Local{
			Name: cfg.LocalBackend().Name, Kind: cfg.LocalBackend().Kind, Store: local, Health: health(local), Restart: local.Restart,
		},
		Logger: log,
	})
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	api, err := httpapi.New(httpapi.Config{
		Host: httpapi.Over(host), Version: version(), Tokens: tokens(cfg), Loopback: cfg.Loopback(), Logger: log.Named("http"),
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "holdfast %s serves on http://%s, data in %s\n", version(), listener.Addr(), cfg.Data)
	return running{api: api, host: host, local: local, house: house, log: log}.until(in.ctx, listener)
}

// options are a backend's options as its plugin wants them, checked before anything starts.
func (in *invocation) options(cfg *config.Config, b *config.Backend) ([]byte, error) {
	d, err := in.ask(cfg, b)
	if err != nil {
		return nil, exitcode.With(exitcode.Environment, cfg.Err(cfg.Refusal(b, err)))
	}
	if diags := cfg.CheckDescription(b, d); diags.HasErrors() {
		return nil, cfg.Err(diags)
	}
	text, diags := cfg.CheckOptions(b, d.Options)
	return text, cfg.Err(diags)
}

func tokens(cfg *config.Config) (list []httpapi.Token) {
	for _, t := range cfg.Tokens {
		list = append(list, httpapi.Token{Name: t.Name, Role: t.Role, Secret: t.Secret.Reveal()})
	}
	return list
}

// house is a data directory that this process holds.
type house struct {
	dir      string
	log      hclog.Logger
	release  func()
	state    *journal.State
	journals map[ports.Family]*journal.Journal
}

func open(cfg *config.Config, log hclog.Logger) (*house, error) {
	release, err := journal.Lock(cfg.Data)
	if err != nil {
		return nil, err
	}
	h := &house{dir: cfg.Data, log: log, release: release, journals: map[ports.Family]*journal.Journal{}}
	if h.state, err = journal.OpenState(cfg.Data, journal.StateOptions{Logger: log.Named("state")}); err != nil {
		release()
		return nil, err
	}
	known, _, err := h.state.Local()
	for _, f := range ports.Families {
		if err != nil {
			break
		}
		h.journals[f], err = journal.Open(journal.Options{
			Dir: cfg.Data, Family: f, Limit: cfg.Journal.Limit, Reserve: cfg.Journal.Reserve, AtLeast: known.Marks[f].Seq,
			Logger: log.Named("journal").With("family", f),
		})
	}
	if err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (h *house) ports() map[ports.Family]ports.Journal {
	all := map[ports.Family]ports.Journal{}
	for f, j := range h.journals {
		all[f] = j
	}
	return all
}

// close syncs what was journaled and lets go of the directory.
func (h *house) close() error {
	var errs []error
	for _, j := range h.journals {
		if j != nil {
			errs = append(errs, j.Close())
		}
	}
	errs = append(errs, h.state.Close())
	h.release()
	return errors.Join(errs...)
}

// plugin prepares a backend's process; it starts with the rest.
func (h *house) plugin(b *config.Backend, options []byte) (*process.Process, error) {
	dir, err := filepath.Abs(h.dir)
	if err != nil {
		return nil, err
	}
	return process.New(process.Spec{
		Name: b.Name, Kind: b.Kind, Path: b.Plugin, Logger: h.log.Named(b.Name),
		Config: ports.Configuration{Name: b.Name, DataDir: dir, Options: options},
	})
}

// running is the host at work.
type running struct {
	api   *httpapi.API
	host  *core.Host
	local *process.Process
	house *house
	log   hclog.Logger
}

// How long each step of a stop may take; together at most ten seconds.
const (
	answersLimit = 5500 * time.Millisecond // net/http waits 5 s for connections on which nothing was asked yet
	drainLimit   = 3500 * time.Millisecond
)

// until runs everything until ctx ends or the listener fails, and stops it in order.
func (r running) until(ctx context.Context, listener net.Listener) error {
	if err := r.local.Start(ctx); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	work, rest := context.WithCancel(context.Background())
	worked := make(chan error, 1)
	go func() { worked <- r.host.Run(work) }()
	server := r.api.Server()
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	var failed error
	select {
	case <-ctx.Done():
	case failed = <-served:
	}
	r.log.Info("stopping")
	r.api.Drain()
	limit, cancel := context.WithTimeout(context.Background(), answersLimit)
	defer cancel()
	if err := server.Shutdown(limit); err != nil {
		failed = errors.Join(failed, fmt.Errorf("some answers were still due after %s: %w", answersLimit, err), server.Close())
	}
	rest()
	failed = errors.Join(failed, <-worked)
	drain, cancel := context.WithTimeout(context.Background(), drainLimit)
	defer cancel()
	failed = errors.Join(failed, r.local.Stop(drain))
	if failed != nil {
		return exitcode.With(exitcode.Failed, failed)
	}
	r.log.Info("stopped")
	return nil
}

// health is what the status tells of a plugin's process.
func health(p *process.Process) func() core.Health {
	return func() core.Health {
		s := p.Status()
		return core.Health{Running: s.Running, PID: s.PID, Starts: s.Starts, Detail: s.Detail, Words: s.Words}
	}
}
