package main

import (
	"fmt"
	"strconv"
	"strings"

	"holdfast/core"
	"holdfast/internal/exitcode"
)

// The commands that compare backends, and bring one to the state of another.

// verifyCommand is `holdfast verify`.
type verifyCommand struct {
	A     string `arg:"" help:"A backend; local is the local store."`
	B     string `arg:"" help:"Another one."`
	Limit int    `default:"20" placeholder:"N" help:"How many differences are listed, at most 1000. Default: 20."`
	JSON  bool   `name:"json" help:"The host's own answer, with the first 1000 differences."`
}

func (verifyCommand) Help() string {
	return "Compares two backends record by record, by key and in both directions, and changes neither. What is on its way meanwhile is looked at again, so that it is no difference; nor is what the retention of a backend's own block removed from it. The line that counts comes last. The exit code is 1 when there are any."
}

func (c verifyCommand) Run(in *invocation) error {
	if c.Limit < 0 {
		return exitcode.With(exitcode.Usage, fmt.Errorf("--limit: %d is no number of differences; give 0 or more", c.Limit))
	}
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Verification core.Verification }
	answer, err := host.last(in.ctx, "/v1/verify", map[string]string{"A": c.A, "B": c.B}, in.far("different"), &got)
	if err != nil {
		return err
	}
	v := &got.Verification
	if c.JSON {
		err = printPart(in, answer, "Verification")
	} else {
		err = showVerification(in, v, c.Limit)
	}
	if err == nil && !v.Equal() {
		err = exitcode.With(exitcode.Failed, fmt.Errorf("%s and %s are not equal", clean(v.A), clean(v.B)))
	}
	return err
}

func showVerification(in *invocation, v *core.Verification, limit int) error {
	if shown := v.Differences[:min(limit, len(v.Differences))]; len(shown) > 0 {
		t := newTable(in.stdout, "FAMILY", "KIND", "KEY", "PART", "DIFFERENCE")
		for i := range shown {
			d := &shown[i]
			difference := "only in " + d.Only
			if d.Only == "" {
				difference = "differs in " + strings.Join(d.Members, ", ")
			}
			t.row(string(d.Family), string(d.Kind), d.Key, partOf(d), difference)
		}
		if err := t.flush(); err != nil {
			return err
		}
		if more := v.OnlyA + v.OnlyB + v.Different - int64(len(shown)); more > 0 {
			fmt.Fprintf(in.stdout, "and %d more\n", more)
		}
		fmt.Fprintln(in.stdout)
	}
	onlyB := fmt.Sprintf("%d only in %s", v.OnlyB, clean(v.B))
	if v.OneWay {
		onlyB = clean(v.B) + " cannot be walked, so that what only it has is not known"
	}
	pruned := ""
	if v.Pruned > 0 {
		pruned = fmt.Sprintf("; %d more only in the local store, past the retention of the other", v.Pruned)
	}
	fmt.Fprintf(in.stdout, "%s in both, %d of them different; %d only in %s; %s%s\n", counted(v.Compared, "record"), v.Different, v.OnlyA, clean(v.A), onlyB, pruned)
	return nil
}

// partOf names an event or an attempt beside its key.
func partOf(d *core.Difference) string {
	if d.GUID == "" && d.Number != 0 {
		return strconv.FormatInt(d.Number, 10)
	}
	return d.GUID
}

// copyCommand is `holdfast copy`.
type copyCommand struct {
	From string `required:"" placeholder:"NAME" help:"The backend that has the records; local is the local store."`
	To   string `required:"" placeholder:"NAME" help:"The backend that gets them; not the local store, see adopt."`
	JSON bool   `name:"json" help:"The host's own answer."`
}

func (copyCommand) Help() string {
	return "Brings everything that one backend has to another. Nothing is removed. A copy that was interrupted goes on where it was when the same command is given again. The exit code is 1 when a record was refused."
}

func (c copyCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Copied core.Copied }
	answer, err := host.last(in.ctx, "/v1/copy", map[string]string{"From": c.From, "To": c.To}, in.far("copied"), &got)
	if err != nil {
		return err
	}
	done := &got.Copied
	if c.JSON {
		err = printPart(in, answer, "Copied")
	} else {
		err = showCopied(in, done)
	}
	if err == nil && done.Unsettled > 0 {
		err = exitcode.With(exitcode.Failed, fmt.Errorf("%s refused by %s; see `holdfast unsettled list --backend %s`", counted(done.Unsettled, "key"), clean(done.To), clean(done.To)))
	}
	return err
}

func showCopied(in *invocation, done *core.Copied) error {
	if len(done.Refusals) > 0 {
		t := newTable(in.stdout, "KEY", "CODE", "REASON")
		for i := range done.Refusals {
			u := &done.Refusals[i]
			t.row(u.Key, string(u.Code), u.Reason)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	resumed := ""
	if done.Resumed {
		resumed = "; it went on where the copy before it was interrupted"
	}
	fmt.Fprintf(in.stdout, "%s of %s looked at, %d put into %s, %s refused%s\n", counted(done.Looked, "record"), clean(done.From), done.Put, clean(done.To), counted(done.Unsettled, "key"), resumed)
	return nil
}

// adoptCommand is `holdfast adopt`.
type adoptCommand struct {
	Name string `arg:"" help:"The backend that has records which the local store lacks."`
	JSON bool   `name:"json" help:"The host's own answer."`
}

func (adoptCommand) Help() string {
	return "Takes what a backend has, and the local store has not or not so, into the local store, by the rules for a record that is sent again: nothing newer is overwritten, and nothing that was removed or has expired comes back. The exit code is 1 when a record was refused."
}

func (c adoptCommand) Run(in *invocation) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Adopted core.Adopted }
	answer, err := host.last(in.ctx, pathOf("/v1/backends/", c.Name, "/adopt"), struct{}{}, in.far("merged"), &got)
	if err != nil {
		return err
	}
	done := &got.Adopted
	if c.JSON {
		err = printPart(in, answer, "Adopted")
	} else {
		fmt.Fprintf(in.stdout, "%s of %s looked at: %d equal, %d merged, %d expired, %d ignored, %d refused\n", counted(done.Looked, "record"), clean(done.Backend),
			done.Equal, done.Taken, done.Expired, done.Ignored, done.Refused)
	}
	if err == nil && done.Refused > 0 {
		err = exitcode.With(exitcode.Failed, fmt.Errorf("%s refused; the host's log says why", counted(done.Refused, "record")))
	}
	return err
}
