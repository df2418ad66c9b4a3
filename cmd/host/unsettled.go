package main

import (
	"fmt"
	"strings"

	"holdfast/core"
)

// unsettledCommand is `holdfast unsettled`: the writes that are set aside because the local store does not take them.
type unsettledCommand struct {
	List    unsettledList    `cmd:"" help:"Show what is set aside, and why."`
	Retry   unsettledRetry   `cmd:"" help:"Try the writes of a key again, in order."`
	Discard unsettledDiscard `cmd:"" help:"Give up the oldest write of a key."`
}

type unsettledList struct {
	JSON bool `name:"json" help:"The host's own answer."`
}

func (c unsettledList) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Unsettled []core.AsideStatus }
	answer, err := host.get(in.ctx, "/v1/unsettled", &got)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(in.stdout, answer)
	}
	if len(got.Unsettled) == 0 {
		fmt.Fprintln(in.stdout, "nothing is set aside")
		return nil
	}
	t := newTable(in.stdout, "FAMILY", "SEQ", "ACTION", "KEY", "SIZE", "AT", "REASON")
	for _, a := range got.Unsettled {
		reason := a.Reason
		if a.Code == "" {
			reason = "waits behind the one before it"
		}
		t.row(string(a.Family), number(a.Seq), string(a.Action), a.Key, sizeText(int64(a.Bytes)), moment(a.At), reason)
	}
	return t.flush()
}

type unsettledRetry struct {
	Family string `arg:"" help:"queue or manifest."`
	Key    string `arg:"" help:"The work item's or the run's hash."`
}

func (c unsettledRetry) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Retried int64 }
	if err := host.post(in.ctx, pathOf("/v1/unsettled/", strings.ToLower(c.Family), "/retry"), map[string]string{"Key": c.Key}, &got); err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "%s on the way again; see `holdfast unsettled list`\n", counted(got.Retried, "write"))
	return nil
}

type unsettledDiscard struct {
	Family string `arg:"" help:"queue or manifest."`
	Key    string `arg:"" help:"The work item's or the run's hash."`
}

func (c unsettledDiscard) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Discarded core.AsideStatus }
	if err := host.post(in.ctx, pathOf("/v1/unsettled/", strings.ToLower(c.Family), "/discard"), map[string]string{"Key": c.Key}, &got); err != nil {
		return err
	}
	d := got.Discarded
	fmt.Fprintf(in.stdout, "discarded %s of %s, Seq %d\n", clean(string(d.Action)), clean(d.Key), d.Seq)
	return nil
}
