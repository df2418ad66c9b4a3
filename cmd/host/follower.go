package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/ports"
)

// follower is a backend beside the local store with its plugin. Whatever is wrong with that plugin, the host serves without
// it: its file may be missing, it may not say what it is, or it may refuse its options. It is tried again and again until it
// starts once; from then on its process keeps it running. Until then every call fails and says why.
type follower struct {
	backend *config.Backend
	log     hclog.Logger
	prepare func(ctx context.Context) (*process.Process, error)

	cancel context.CancelFunc
	ended  chan struct{}

	mu      sync.Mutex
	process *process.Process // nil while there is none that starts or has started
	failure error            // why it did not start, the last time
	given   bool             // up: it cannot start as it is
}

// Pauses between two tries to start a follower's plugin. What can never start as it is, is tried at the last one only, and at
// once when its file is another.
const (
	firstPause   = time.Second
	lastPause    = 5 * time.Minute
	lookAtPlugin = time.Second
)

// followers are the configuration's followers. options has those of the plugins that answered already; the others are asked
// when they are started.
func (in *invocation) followers(cfg *config.Config, h *house, options map[*config.Backend]json.RawMessage) (list []*follower) {
	var checking sync.Mutex // of the configuration, which notes what it is asked about
	for _, b := range cfg.Followers() {
		known, answered := options[b]
		prepare := func(ctx context.Context) (*process.Process, error) {
			if !answered {
				var err error
				if known, err = in.lateOptions(ctx, cfg, b, &checking); err != nil {
					return nil, err
				}
				answered = true
			}
			return h.plugin(b, known, lastPause)
		}
		list = append(list, &follower{backend: b, log: h.log.Named(b.Name), prepare: prepare})
	}
	return list
}

// lateOptions asks a plugin that did not answer before. What is wrong is told in one line: it stands in the status.
func (in *invocation) lateOptions(ctx context.Context, cfg *config.Config, b *config.Backend, checking *sync.Mutex) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, describeTimeout)
	defer cancel()
	d, err := in.ask(ctx, cfg, b)
	if err != nil {
		return nil, err
	}
	checking.Lock()
	defer checking.Unlock()
	options, mistakes := checkedOne(cfg, b, d)
	if mistakes.HasErrors() {
		return nil, ports.Errorf(ports.Invalid, "", "%s in its block; see `holdfast config check`", mistakes[0].Summary)
	}
	return options, nil
}

// followed are the followers as the core knows them.
func followed(list []*follower) (all []core.Follower) {
	for _, f := range list {
		all = append(all, core.Follower{Name: f.backend.Name, Kind: f.backend.Kind, Store: f, Health: f.health, Restart: f.restart})
	}
	return all
}

// start begins to try. It waits for nothing.
func (f *follower) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.cancel, f.ended = cancel, make(chan struct{})
	go func() {
		defer close(f.ended)
		f.try(ctx)
	}()
}

// try starts the plugin, as often as it takes.
func (f *follower) try(ctx context.Context) {
	pause := firstPause
	for told := ""; ; {
		before := pluginFile(f.backend.Plugin)
		err := f.begin(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		f.mu.Lock()
		f.failure, f.given = err, ports.CodeOf(err).Permanent()
		wait := pause
		if f.given {
			wait = lastPause
		}
		f.mu.Unlock()
		if told != err.Error() {
			f.log.Error("the backend does not start and gets no copies; the host serves without it and tries again", "error", err)
			told = err.Error()
		}
		if !f.pause(ctx, wait, before) {
			return
		}
		pause = min(2*pause, lastPause)
	}
}

// begin makes one try.
func (f *follower) begin(ctx context.Context) error {
	p, err := f.prepare(ctx)
	if err != nil {
		return err
	}
	f.set(p)
	if err := p.Start(ctx); err != nil {
		f.set(nil)
		return err
	}
	return nil
}

func (f *follower) set(p *process.Process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.process = p
}

// pause waits; it is cut short when the plugin's file is another. It says whether there is a next try.
func (f *follower) pause(ctx context.Context, wait time.Duration, before os.FileInfo) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	looks := time.NewTicker(lookAtPlugin)
	defer looks.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-looks.C:
			if after := pluginFile(f.backend.Plugin); after != nil && changed(before, after) {
				return true
			}
		}
	}
}

func pluginFile(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

func changed(before, after os.FileInfo) bool {
	return before == nil || !os.SameFile(before, after) || before.Size() != after.Size() || before.Mode() != after.Mode() || !before.ModTime().Equal(after.ModTime())
}

// stop ends the tries, and the plugin when it runs.
func (f *follower) stop(ctx context.Context) error {
	if f.cancel == nil {
		return nil
	}
	f.cancel()
	<-f.ended
	if p, err := f.running(); err == nil {
		return p.Stop(ctx)
	}
	return nil
}

// running gives the process, or why there is none.
func (f *follower) running() (*process.Process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.process != nil:
		return f.process, nil
	case f.failure != nil:
		return nil, ports.Errorf(ports.BackendGone, f.backend.Name, "%v", f.failure)
	}
	return nil, ports.Errorf(ports.BackendGone, f.backend.Name, "is not started yet")
}

// health is what the status tells of the plugin.
func (f *follower) health() core.Health {
	f.mu.Lock()
	p, failure, given := f.process, f.failure, f.given
	f.mu.Unlock()
	switch {
	case p != nil:
		return health(p)()
	case failure != nil:
		return core.Health{GivenUp: given, Detail: failure.Error()}
	}
	return core.Health{} // not tried yet
}

func (f *follower) restart(reason string) {
	if p, err := f.running(); err == nil {
		p.Restart(reason)
	}
}
