package main

import (
	"fmt"

	"holdfast/adapters/journal"
	"holdfast/internal/exitcode"
)

// localCommand is `holdfast local`.
type localCommand struct {
	Accept localAccept `cmd:"" help:"Go on with a local store that holds other history than this host knows."`
	NewID  localNewID  `cmd:"" name:"new-id" help:"Make a copied data directory a host of its own."`
}

type localAccept struct {
	Adopt bool `help:"Also bring it what the journal still has."`
}

func (localAccept) Help() string {
	return "A local store that is not the one this host wrote to is not touched until this is said; `holdfast status` tells when it waits."
}

func (c localAccept) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	if err := host.post(in.ctx, "/v1/local/accept", map[string]bool{"Adopt": c.Adopt}, &struct{}{}); err != nil {
		return err
	}
	fmt.Fprintln(in.stdout, "accepted; see `holdfast status`")
	return nil
}

type localNewID struct{}

func (localNewID) Help() string {
	return "A data directory that was copied has the id of the one it was copied from, and the local store refuses the second host of one id. Run this in the copy, with its host stopped: it takes a new id; what the original had committed is not committed again. Where the copy has run and the original is refused now, run it in the original as well: what its journal still holds is committed under its new id."
}

func (localNewID) Run(in *invocation) error {
	cfg, err := in.load(nil)
	if err != nil {
		return err
	}
	release, err := journal.Lock(cfg.Data)
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	defer release()
	state, err := journal.OpenState(cfg.Data, journal.StateOptions{Logger: in.logger(cfg)})
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	if err := state.NewHostID(); err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	who, err := state.Host()
	if err != nil {
		return exitcode.With(exitcode.Environment, err)
	}
	fmt.Fprintf(in.stdout, "the host in %s is %s now\n", cfg.Data, who.ID)
	return state.Close()
}
