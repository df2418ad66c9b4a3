package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/term"

	"holdfast/core"
	"holdfast/internal/exitcode"
)

// resyncCommand is `holdfast resync`.
type resyncCommand struct {
	Name    string `arg:"" help:"The backend; not the local store."`
	Exact   bool   `help:"Remove what only the backend has."`
	Confirm *int64 `placeholder:"N" help:"With --exact: how many records are to be removed; only if it is exactly that many, they are."`
}

func (resyncCommand) Help() string {
	return "Copies everything that the local store has to a backend again, from the beginning; nothing is removed from it. With --exact nothing is copied: the records that only the backend has are counted, and removed when you confirm their number, by typing it or with --confirm. A wrong number removes nothing, and the exit code is 1."
}

func (c resyncCommand) Run(in *invocation) error {
	if c.Confirm != nil && !c.Exact {
		return exitcode.With(exitcode.Usage, errors.New("--confirm goes with --exact"))
	}
	if c.Confirm != nil && *c.Confirm < 0 {
		return exitcode.With(exitcode.Usage, errors.New("--confirm: it is a count"))
	}
	host, err := in.client()
	if err != nil {
		return err
	}
	if c.Exact {
		return c.exact(in, host)
	}
	if err := host.post(in.ctx, pathOf("/v1/backends/", c.Name, "/resync"), struct{}{}, &struct{}{}); err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "everything is copied to %s again; nothing is removed from it. `holdfast status` tells how far it is\n", clean(c.Name))
	return nil
}

func (c resyncCommand) exact(in *invocation, host *client) error {
	if c.Confirm != nil {
		return c.remove(in, host, *c.Confirm)
	}
	found, err := c.ask(in, host, nil)
	if err != nil {
		return err
	}
	if found.OnlyThere == 0 {
		fmt.Fprintf(in.stdout, "%s has nothing that the local store has not\n", clean(c.Name))
		return nil
	}
	fmt.Fprintf(in.stdout, "%s only in %s; `holdfast verify local %s` lists them, `holdfast adopt %s` would keep them\n", counted(found.OnlyThere, "record"), clean(c.Name), clean(c.Name), clean(c.Name))
	if !in.personTypes() {
		return exitcode.With(exitcode.Failed, fmt.Errorf("nothing was removed; to remove them, add --confirm %d", found.OnlyThere))
	}
	if !typed(in.stdin, in.stderr, found.OnlyThere) {
		return exitcode.With(exitcode.Failed, errors.New("nothing was removed"))
	}
	return c.remove(in, host, found.OnlyThere)
}

func (c resyncCommand) remove(in *invocation, host *client, confirm int64) error {
	done, err := c.ask(in, host, &confirm)
	if err != nil {
		return err
	}
	fmt.Fprintf(in.stdout, "%s removed from %s\n", counted(done.Removed, "record"), clean(c.Name))
	if done.Removed != confirm {
		return exitcode.With(exitcode.Failed, fmt.Errorf("%s were to be removed; count again", counted(confirm, "record")))
	}
	return nil
}

func (c resyncCommand) ask(in *invocation, host *client, confirm *int64) (core.Exactness, error) {
	var got struct{ Exactness core.Exactness }
	_, err := host.last(in.ctx, pathOf("/v1/backends/", c.Name, "/resync"), map[string]any{"Exact": true, "Confirm": confirm}, in.far("removed"), &got)
	return got.Exactness, err
}

// personTypes says whether somebody can be asked.
func (in *invocation) personTypes() bool {
	f, ok := in.stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && in.terminal() != nil
}

// typed asks a person to type a count, and says whether it was that one.
func typed(from io.Reader, to io.Writer, count int64) bool {
	fmt.Fprintf(to, "Type %d to remove them for good: ", count)
	line, err := bufio.NewReader(from).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	return err == nil && n == count
}
