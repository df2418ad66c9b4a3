package main

import "fmt"

// localCommand is `holdfast local`.
type localCommand struct {
	Accept localAccept `cmd:"" help:"Go on with a local store that holds other history than this host knows."`
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
