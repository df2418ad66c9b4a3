package main

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"holdfast/core"
	"holdfast/internal/exitcode"
)

// unsettledCommand is `holdfast unsettled`: the writes that are set aside because the local store does not take them, and the
// keys that another backend refused, did not survive, or may not have.
type unsettledCommand struct {
	List    unsettledList    `cmd:"" help:"Show what is set aside or unsettled, and why."`
	Retry   unsettledRetry   `cmd:"" help:"Try the writes of a key again in order, or copy a key to a backend again."`
	Discard unsettledDiscard `cmd:"" help:"Give up the oldest write of a key, or a key of a backend."`
}

type unsettledList struct {
	Backend string `placeholder:"NAME" help:"Only of this backend."`
	Family  string `placeholder:"NAME" help:"Only queue or only manifest."`
	After   string `placeholder:"KEY" help:"Only keys behind this one, with --backend and --family."`
	Limit   int    `default:"500" help:"Keys of each backend and family, at most 500."`
	JSON    bool   `name:"json" help:"The host's own answer."`
}

// unsettledAnswer is the answer of GET /v1/unsettled.
type unsettledAnswer struct {
	envelope
	Unsettled []core.AsideStatus
	Keys      []core.UnsettledStatus
}

func (c unsettledList) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	query := url.Values{"limit": {strconv.Itoa(c.Limit)}}
	for name, value := range map[string]string{"backend": c.Backend, "family": c.Family, "after": c.After} {
		if value != "" {
			query.Set(name, value)
		}
	}
	var got unsettledAnswer
	answer, err := host.get(in.ctx, "/v1/unsettled?"+query.Encode(), &got)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(in.stdout, answer)
	}
	if len(got.Unsettled)+len(got.Keys) == 0 {
		fmt.Fprintln(in.stdout, "nothing is set aside, and no key is unsettled")
		return nil
	}
	if err := showAsides(in, got.Unsettled); err != nil {
		return err
	}
	if len(got.Unsettled) > 0 && len(got.Keys) > 0 {
		fmt.Fprintln(in.stdout)
	}
	if err := showKeys(in, got.Keys); err != nil {
		return err
	}
	if got.More {
		fmt.Fprintln(in.stderr, "there are more; see --backend, --family and --after")
	}
	return nil
}

func showAsides(in *invocation, list []core.AsideStatus) error {
	if len(list) == 0 {
		return nil
	}
	t := newTable(in.stdout, "FAMILY", "SEQ", "ACTION", "KEY", "SIZE", "AT", "REASON")
	for i := range list {
		a := &list[i]
		reason := a.Reason
		if a.Code == "" {
			reason = "waits behind the one before it"
		}
		t.row(string(a.Family), number(a.Seq), string(a.Action), a.Key, sizeText(int64(a.Bytes)), moment(a.At), reason)
	}
	return t.flush()
}

func showKeys(in *invocation, list []core.UnsettledStatus) error {
	if len(list) == 0 {
		return nil
	}
	t := newTable(in.stdout, "BACKEND", "FAMILY", "KEY", "KIND", "CODE", "FIRST", "LAST", "AT", "REASON")
	for i := range list {
		u := &list[i]
		t.row(u.Backend, string(u.Family), u.Key, string(u.Kind), string(u.Code), number(u.First), number(u.Last), moment(u.At), u.Reason)
	}
	return t.flush()
}

type unsettledRetry struct {
	Backend string `placeholder:"NAME" help:"A backend that is not the local store. Without it the local store is meant."`
	Family  string `arg:"" help:"queue or manifest."`
	Key     string `arg:"" optional:"" help:"The work item's or the run's hash."`
	All     bool   `help:"Every key of the backend's family, in the place of one."`
}

func (unsettledRetry) Help() string {
	return "Mend the cause first: without that the same is refused again. A key of a backend is copied as the local store has it now."
}

func (c unsettledRetry) Run(in *invocation) error {
	switch {
	case c.All && c.Key != "":
		return exitcode.With(exitcode.Usage, errors.New("a KEY and --all exclude each other"))
	case c.All && c.Backend == "":
		return exitcode.With(exitcode.Usage, errors.New("--all goes with --backend; the local store's writes are retried key by key"))
	case !c.All && c.Key == "":
		return exitcode.With(exitcode.Usage, errors.New("a KEY is missing; with --backend there is --all, too"))
	}
	var got struct{ Retried int64 }
	if err := in.settle(c.Family, "/retry", map[string]any{"Backend": c.Backend, "Key": c.Key, "All": c.All}, &got); err != nil {
		return err
	}
	if c.Backend == "" {
		fmt.Fprintf(in.stdout, "%s on the way again; see `holdfast unsettled list`\n", counted(got.Retried, "write"))
		return nil
	}
	fmt.Fprintf(in.stdout, "%s on the way again; see `holdfast unsettled list --backend %s`\n", counted(got.Retried, "key"), clean(c.Backend))
	return nil
}

type unsettledDiscard struct {
	Backend string `placeholder:"NAME" help:"A backend that is not the local store. Without it the local store is meant."`
	Family  string `arg:"" help:"queue or manifest."`
	Key     string `arg:"" help:"The work item's or the run's hash."`
}

func (unsettledDiscard) Help() string {
	return "Of the local store, the oldest set-aside write of the key is dropped for good. Of another backend, the key is given up there: it stays as it is in that backend, is read elsewhere, and is shown by verify."
}

func (c unsettledDiscard) Run(in *invocation) error {
	var got struct {
		Discarded struct {
			core.AsideStatus
			Backend string
		}
	}
	if err := in.settle(c.Family, "/discard", map[string]any{"Backend": c.Backend, "Key": c.Key}, &got); err != nil {
		return err
	}
	d := &got.Discarded
	if d.Backend != "" {
		fmt.Fprintf(in.stdout, "gave up %s of %s\n", clean(d.Key), clean(d.Backend))
		return nil
	}
	fmt.Fprintf(in.stdout, "discarded %s of %s, Seq %d\n", clean(string(d.Action)), clean(d.Key), d.Seq)
	return nil
}

// settle gives an order about unsettled things.
func (in *invocation) settle(family, order string, body map[string]any, into any) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	return host.post(in.ctx, pathOf("/v1/unsettled/", strings.ToLower(family), order), body, into)
}
