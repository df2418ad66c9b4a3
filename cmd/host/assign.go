package main

import (
	"errors"
	"fmt"
	"strings"

	"holdfast/core"
	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// assignCommand is `holdfast assign`.
type assignCommand struct {
	Beacon     string `arg:"" optional:"" help:"The databeacon, by its Name or its BeaconID. It need not be there yet."`
	Connection int64  `arg:"" optional:"" help:"The number of its connection to a database (IDBeaconConnection), from 1."`
	Family     string `placeholder:"FAMILY" help:"Only this half of history: queue or manifest."`
	Clear      bool   `help:"Assign none."`
}

func (assignCommand) Help() string {
	return "Says which databeacon keeps history behind the backend of kind meadowproxy, and in which of its databases. It stands until the next one, whoever is connected meanwhile and over restarts of both sides; a Name survives the beacon's restarts best. Another connection is another store: everything is copied to it from the beginning, and nothing is removed from the one before. What is assigned already is tried at once. `holdfast status` tells how it stands."
}

func (c assignCommand) Run(in *invocation) error {
	order := map[string]any{}
	switch {
	case c.Clear && (c.Beacon != "" || c.Connection != 0):
		return exitcode.With(exitcode.Usage, errors.New("--clear goes without a beacon and a connection"))
	case c.Clear:
		order["Clear"] = true
	case c.Beacon == "" || c.Connection == 0:
		return exitcode.With(exitcode.Usage, errors.New("give a beacon and the number of its connection, or --clear; see holdfast help assign"))
	default:
		order["BeaconID"], order["IDBeaconConnection"] = c.Beacon, c.Connection
	}
	if c.Family != "" {
		order["Family"] = c.Family
	}
	host, err := in.client()
	if err != nil {
		return err
	}
	var got struct{ Assignments []core.AssignmentStatus }
	if err := host.post(in.ctx, "/v1/assignment", order, &got); err != nil {
		return err
	}
	return assignmentTable(in, got.Assignments)
}

// assignmentTable shows how it stands with what is assigned.
func assignmentTable(in *invocation, list []core.AssignmentStatus) error {
	t := newTable(in.stdout, "ASSIGNED", "BEACON", "CONNECTION", "STATE", "BACKEND", "DETAIL")
	for i := range list {
		a := &list[i]
		beacon, connection := a.BeaconID, ""
		if a.IDBeaconConnection != 0 {
			connection = fmt.Sprint(a.IDBeaconConnection)
		}
		if a.Tagged {
			beacon += " (by its tag)"
		}
		t.row(string(a.Family), beacon, connection, a.State, a.Backend, sentence(a.Detail, a.Remedy))
	}
	return t.flush()
}

// concerns says whether what is assigned is worth a word: somebody assigned something, or could.
func concerns(list []core.AssignmentStatus) bool {
	for i := range list {
		if list[i].BeaconID != "" || list[i].Backend != "" {
			return true
		}
	}
	return false
}

// assignment judges what is assigned.
func (c *checkup) assignment(a *core.AssignmentStatus) {
	what := "assigned " + strings.ToLower(string(a.Family))
	if a.BeaconID == "" {
		if a.Backend != "" {
			c.foundf(warns, what, "nothing; run `holdfast assign BEACON CONNECTION`, or give a databeacon the tag %s", ports.ConnectionTag)
		}
		return
	}
	verdict := warns
	switch a.State {
	case "bootstrapped":
		verdict = fine
	case "error":
		verdict = fails
	}
	how := ""
	if a.Tagged {
		how = ", by its tag"
	}
	c.foundf(verdict, what, "%s, connection %d%s: %s", a.BeaconID, a.IDBeaconConnection, how, sentence(a.State, a.Detail, a.Remedy))
}
