package main

import (
	"fmt"
	"net"

	"holdfast/adapters/httpapi"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/internal/exitcode"
	"holdfast/internal/heap"
)

// serveCommand is `holdfast serve`: it puts the parts together, runs them and stops them in order.
//
//	lock the data directory -> state -> journals -> the local store's plugin -> the followers' plugins -> core -> mesh, HTTP, a hub to join
//
// Stopping goes the other way round: no more intake, due answers given, beacons let go, the joined hub left, the core at rest, the plugins drained, the journals
// synced. Everything that is looked up in the machine is in house.go, the order of start and stop in running.go.
type serveCommand struct {
	Listen string `placeholder:"HOST:PORT" help:"Where to listen ($$HOLDFAST_LISTEN)."`
	Data   string `placeholder:"DIR" help:"The data directory ($$HOLDFAST_DATA)."`
}

func (serveCommand) Help() string {
	return "Serves until SIGTERM or an interrupt, then stops in order within ten seconds. Without a configuration it listens on 127.0.0.1:8420 and keeps its history with SQLite in ./data. A backend beside the local store that does not start keeps nothing from being served; `holdfast status` tells why it does not, and it is tried again. With `production = true` only plugins are started whose files are in the lock (see `holdfast help plugin lock`). Exit code 0 after an orderly stop, 1 when the stop had to be cut short, 2 for a mistake in the configuration, 3 when the machine stands in the way (the port or the data directory is taken, the local store's plugin does not start)."
}

func (s serveCommand) Run(in *invocation) error {
	cfg, err := in.load(map[string]string{"listen": s.Listen, "data": s.Data})
	if err != nil {
		return err
	}
	heap.Floor()
	log := in.logger(cfg)
	if err := in.checkToServe(cfg); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return exitcode.With(exitcode.Environment, fmt.Errorf("listen on %s: %w; stop what listens there or set another address with --listen", cfg.Listen, err))
	}
	defer listener.Close()
	if cfg.TLS.On() {
		shown, err := openCertificate(cfg.TLS, log.Named("tls"))
		if err != nil {
			return err
		}
		listener = shown.over(listener)
	}
	house, err := open(cfg, log)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer house.close()
	if house.mesh, err = openCrossing(cfg, log.Named("mesh")); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer house.mesh.close()
	local, err := house.plugin(cfg, cfg.LocalBackend())
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	followers, processes, err := house.followers(cfg)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	host, err := core.New(core.Config{
		Version: version(), Ack: core.Ack(cfg.Ack), Retention: cfg.Retention, State: house.state, Journals: house.ports(),
		Local: core.Local{
			Name: cfg.LocalBackend().Name, Kind: cfg.LocalBackend().Kind, Store: local, Health: health(local), Restart: local.Restart,
		},
		Followers: followers, Route: route(cfg), Damaged: house.state.Damaged(), Beacons: house.mesh.beacons, Logger: log,
	})
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	member, err := join(cfg, house.state, host, log.Named("member"))
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	api, err := httpapi.New(httpapi.Config{
		Host: httpapi.Over(host), Version: version(), Tokens: tokens(cfg), Loopback: cfg.Loopback(),
		Hub: house.mesh.told(cfg), Joined: member.told(), Metrics: house.mesh.metrics(cfg, member), Logger: log.Named("http"),
	})
	if err != nil {
		return err
	}
	if err := house.mesh.begin(cfg, host, member, log.Named("mesh")); err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "holdfast %s serves on %s://%s, data in %s\n", version(), cfg.Scheme(), listener.Addr(), cfg.Data)
	refused := func(err error) error { return cfg.Err(cfg.Refusal(cfg.LocalBackend(), err)) }
	return running{api: api, mesh: house.mesh, member: member, host: host, local: local, followers: processes, log: log, refused: refused}.until(in.ctx, listener)
}

func tokens(cfg *config.Config) (list []httpapi.Token) {
	for _, t := range cfg.Tokens {
		list = append(list, httpapi.Token{Name: t.Name, Role: t.Role, Secret: t.Secret.Reveal()})
	}
	return list
}

// route is the route as the core reads it: the local store is "local" there, whatever its name is.
func route(cfg *config.Config) (names []string) {
	for _, b := range cfg.Routed() {
		name := b.Name
		if b.Local {
			name = "local"
		}
		names = append(names, name)
	}
	return names
}
