package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
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

// plugin prepares a backend's process. maxWait is the longest pause between two starts of one that keeps dying; 0 is the usual.
func (h *house) plugin(b *config.Backend, options json.RawMessage, maxWait time.Duration) (*process.Process, error) {
	dir, err := filepath.Abs(h.dir)
	if err != nil {
		return nil, err
	}
	return process.New(process.Spec{
		Name: b.Name, Kind: b.Kind, Path: b.Plugin, Logger: h.log.Named(b.Name), MaxWait: maxWait,
		Config: ports.Configuration{Name: b.Name, DataDir: dir, Options: options},
	})
}

// health is what the status tells of a plugin's process.
func health(p *process.Process) func() core.Health {
	return func() core.Health {
		s := p.Status()
		return core.Health{
			Running: s.Running, PID: s.PID, Starts: s.Starts, GivenUp: s.State == process.GivenUp, Detail: s.Detail, Words: s.Words,
		}
	}
}
