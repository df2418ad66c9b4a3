package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/journal"
	"holdfast/adapters/process"
	"holdfast/core"
	"holdfast/internal/config"
	"holdfast/ports"
)

// house is a data directory that this process holds.
type house struct {
	dir      string
	log      hclog.Logger
	release  func()
	state    *journal.State
	journals map[ports.Family]*journal.Journal
	mesh     *crossing

	checking sync.Mutex // of the configuration, which notes what it is asked about
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

// followerWait is the longest pause between two starts of a follower's plugin that keeps dying; the local store's is tried
// more often, since nothing is decided without it.
const followerWait = 5 * time.Minute

// plugin prepares a backend's process.
func (h *house) plugin(cfg *config.Config, b *config.Backend) (*process.Process, error) {
	dir, err := filepath.Abs(h.dir)
	if err != nil {
		return nil, err
	}
	spec, err := specOf(cfg, b)
	if err != nil {
		return nil, err
	}
	spec.Name, spec.Logger = b.Name, h.log.Named(b.Name)
	spec.Config = ports.Configuration{Name: b.Name, DataDir: dir, Mesh: h.mesh.plugins()}
	spec.Options = func(d ports.Description) (json.RawMessage, error) { return h.optionsOf(cfg, b, d) }
	spec.Place = b.Place
	if !b.Local {
		spec.MaxWait = followerWait
	}
	return process.New(spec)
}

// followers prepares the processes of all backends but the local store.
func (h *house) followers(cfg *config.Config) (list []core.Follower, processes []*process.Process, _ error) {
	for _, b := range cfg.Followers() {
		p, err := h.plugin(cfg, b)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, core.Follower{Name: b.Name, Kind: b.Kind, Store: p, Health: health(p), Restart: p.Restart, Retention: b.Retention})
		processes = append(processes, p)
	}
	return list, processes, nil
}

// optionsOf holds a block against what its plugin said at a start, which may be another plugin than at the one before. What is
// wrong is told in one line: it stands in the status.
func (h *house) optionsOf(cfg *config.Config, b *config.Backend, d ports.Description) (json.RawMessage, error) {
	h.checking.Lock()
	defer h.checking.Unlock()
	options, mistakes := checkedOne(cfg, b, d)
	if mistakes.HasErrors() {
		where := ""
		if at := mistakes[0].Subject; at != nil && b.Line() != "" {
			where = fmt.Sprintf(" (%s:%d)", at.Filename, at.Start.Line)
		}
		detail, _, _ := strings.Cut(mistakes[0].Detail, "\n")
		return nil, ports.Errorf(ports.Invalid, "", "%s in its block%s: %s See `holdfast config check`", mistakes[0].Summary, where, full(detail))
	}
	return options, nil
}

// full ends a sentence.
func full(text string) string {
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}

// health is what the status tells of a plugin's process.
func health(p *process.Process) func() core.Health {
	return func() core.Health {
		s := p.Status()
		return core.Health{
			Running: s.Running, PID: s.PID, Starts: s.Starts, GivenUp: s.State == process.GivenUp, Detail: s.Detail, Words: s.Words,
			Died: s.Died, DiedAt: s.DiedAt,
		}
	}
}
