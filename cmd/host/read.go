package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"holdfast/internal/exitcode"
	"holdfast/ports"
)

// The commands that look at history.

// listFlags are what every list takes.
type listFlags struct {
	Limit int  `default:"50" help:"Records in one page, at most 500."`
	All   bool `help:"Every page, not only the first."`
	JSON  bool `name:"json" help:"The host's own answer, one for each page."`
}

// itemsCommand is `holdfast items`.
type itemsCommand struct {
	Status           []string `placeholder:"STATUS" help:"Only of this status; several are possible."`
	Capability       string   `placeholder:"NAME" help:"Only of this capability."`
	Action           string   `placeholder:"NAME" help:"Only of this action."`
	RunID            string   `name:"run-id" placeholder:"ID" help:"Only of this run."`
	RunHash          string   `placeholder:"HASH" help:"Only of this run, by its hash."`
	OperationHash    string   `placeholder:"HASH" help:"Only of this operation."`
	AssignedBeaconID string   `name:"assigned-beacon-id" placeholder:"ID" help:"Only assigned to this beacon."`
	AffinityKey      string   `placeholder:"KEY" help:"Only of this affinity."`
	Error            string   `placeholder:"TEXT" help:"Only with this text in LastError."`
	Since            string   `placeholder:"TIME" help:"Only enqueued since then: RFC 3339, or a duration back such as 24h."`
	Until            string   `placeholder:"TIME" help:"Only enqueued before."`
	OrderBy          string   `placeholder:"COLUMN" help:"Another order than that of enqueueing."`
	Order            string   `enum:"asc,desc" default:"desc" help:"asc or desc."`
	listFlags
}

func (c itemsCommand) Run(in *invocation) error {
	query := url.Values{"status": c.Status, "order": {c.Order}}
	for name, value := range map[string]string{
		"capability": c.Capability, "action": c.Action, "run_id": c.RunID, "run_hash": c.RunHash, "operation_hash": c.OperationHash,
		"assigned_beacon_id": c.AssignedBeaconID, "affinity_key": c.AffinityKey, "error": c.Error, "since": c.Since, "until": c.Until, "order_by": c.OrderBy,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return in.list("/v1/work-items", "WorkItems", query, c.listFlags,
		[]string{"WorkItemHash", "Status", "Capability", "Action", "RunID", "EnqueuedAt", "AttemptNumber", "LastError"})
}

// manifestsCommand is `holdfast manifests`.
type manifestsCommand struct {
	Status        []string `placeholder:"STATUS" help:"Only of this status; several are possible."`
	OperationHash string   `placeholder:"HASH" help:"Only of this operation."`
	Since         string   `placeholder:"TIME" help:"Only received since then: RFC 3339, or a duration back such as 24h."`
	Until         string   `placeholder:"TIME" help:"Only received before."`
	Order         string   `enum:"asc,desc" default:"desc" help:"asc or desc."`
	listFlags
}

func (c manifestsCommand) Run(in *invocation) error {
	query := url.Values{"status": c.Status, "order": {c.Order}}
	for name, value := range map[string]string{"operation_hash": c.OperationHash, "since": c.Since, "until": c.Until} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return in.list("/v1/manifests", "Manifests", query, c.listFlags, []string{"Hash", "OperationName", "Status", "RunMode", "StartTime", "StopTime", "ElapsedMs"})
}

// eventsCommand is `holdfast events`.
type eventsCommand struct {
	Hash  string `arg:"" help:"The work item."`
	Order string `enum:"asc,desc" default:"asc" help:"asc or desc."`
	listFlags
}

func (c eventsCommand) Run(in *invocation) error {
	return in.list(pathOf("/v1/work-items/", c.Hash, "/events"), "Events", url.Values{"order": {c.Order}, "bodies": {"true"}}, c.listFlags,
		[]string{eventTime, "EventType", "FromStatus", "ToStatus", "BeaconID", "Seq", "EventGUID", "Payload"})
}

// attemptsCommand is `holdfast attempts`.
type attemptsCommand struct {
	Hash string `arg:"" help:"The work item."`
	listFlags
}

func (c attemptsCommand) Run(in *invocation) error {
	return in.list(pathOf("/v1/work-items/", c.Hash, "/attempts"), "Attempts", url.Values{}, c.listFlags,
		[]string{"AttemptNumber", "BeaconID", "StartedAt", "EndedAt", "Outcome", "Error"})
}

// list shows a list, the columns of its members named.
func (in *invocation) list(path, payload string, query url.Values, flags listFlags, columns []string) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	query.Set("limit", strconv.Itoa(flags.Limit))
	rows := newTable(in.stdout, columns...)
	n := 0
	for {
		var page struct{ envelope }
		answer, err := host.get(in.ctx, path+"?"+query.Encode(), &page)
		if err != nil {
			return err
		}
		if flags.JSON {
			if err := printJSON(in.stdout, answer); err != nil {
				return err
			}
		} else if err := addRows(rows, answer, payload, columns, &n); err != nil {
			return err
		}
		if flags.All && page.More && page.Cursor != "" {
			query.Set("cursor", page.Cursor)
			continue
		}
		if flags.JSON {
			return nil
		}
		if err := rows.flush(); err != nil {
			return err
		}
		in.remark(&page.envelope, n)
		return nil
	}
}

func addRows(t table, answer []byte, payload string, columns []string, n *int) error {
	var body map[string]json.RawMessage
	var records []map[string]json.RawMessage
	if err := json.Unmarshal(answer, &body); err != nil {
		return err
	}
	if err := json.Unmarshal(body[payload], &records); err != nil {
		return err
	}
	for _, record := range records {
		cells := make([]string, len(columns))
		for i, column := range columns {
			cells[i] = brief(cellOf(record, column), 100)
		}
		t.row(cells...)
		*n++
	}
	return nil
}

// eventTime is the column of when an event was: as it says itself, or else when it was received.
const eventTime = "EmittedAt"

// cellOf gives a member of a record as a cell. Hubs call some members of an attempt otherwise than their columns are called.
func cellOf(record map[string]json.RawMessage, column string) string {
	if text := valueText(record[column]); text != "" {
		return text
	}
	if column == eventTime {
		ms, _, _ := strings.Cut(valueText(record["OrderKey"]), "-")
		if n, err := strconv.ParseInt(ms, 10, 64); err == nil {
			return ports.FormatMs(n)
		}
	}
	for _, c := range ports.Attempts.Members {
		if c.Name == column && c.Alias != "" {
			return valueText(record[c.Alias])
		}
	}
	return ""
}

// remark tells on standard error what a table does not show.
func (in *invocation) remark(e *envelope, shown int) {
	var remarks []string
	if e.More && e.Cursor == "" {
		remarks = append(remarks, "the search was cut; narrow it down")
	} else if e.More {
		remarks = append(remarks, "there are more; see --all and --limit")
	}
	if e.Stale {
		remarks = append(remarks, "the local store is behind, so that this may be old")
	}
	if e.Incomplete {
		remarks = append(remarks, "writes are set aside, so that this may be incomplete; see `holdfast unsettled list`")
	}
	if len(remarks) > 0 || shown == 0 {
		fmt.Fprintf(in.stderr, "%s\n", strings.Join(append([]string{counted(int64(shown), "record")}, remarks...), "; "))
	}
}

// itemCommand and manifestCommand show one record.
type (
	itemCommand struct {
		Hash string `arg:"" help:"The work item."`
		JSON bool   `name:"json" help:"The host's own answer."`
	}
	manifestCommand struct {
		Hash string `arg:"" help:"The manifest's run hash."`
		JSON bool   `name:"json" help:"The host's own answer."`
	}
)

func (c itemCommand) Run(in *invocation) error {
	return in.record(in.ctx, pathOf("/v1/work-items/", c.Hash, ""), "WorkItem", c.Hash, c.JSON)
}

func (c manifestCommand) Run(in *invocation) error {
	return in.record(in.ctx, pathOf("/v1/manifests/", c.Hash, ""), "Manifest", c.Hash, c.JSON)
}

func (in *invocation) record(ctx context.Context, path, payload, key string, asJSON bool) error {
	host, err := in.client()
	if err != nil {
		return err
	}
	var e struct{ envelope }
	answer, err := host.get(ctx, path, &e)
	if err != nil {
		return err
	}
	if asJSON {
		if err := printJSON(in.stdout, answer); err != nil {
			return err
		}
	}
	if e.NotFound {
		return exitcode.With(exitcode.Failed, fmt.Errorf("no %s has the key %q", strings.ToLower(payload), key))
	}
	if asJSON {
		return nil
	}
	rows := newTable(in.stdout)
	err = ports.ScanObject(answer, ports.MaxDepth+1, func(name, value []byte) error {
		if plain, _ := ports.Unquote(name); plain != payload {
			return nil
		}
		return ports.ScanObject(value, ports.MaxDepth, func(name, value []byte) error { // in the order of the record
			member, _ := ports.Unquote(name)
			rows.row(member, valueText(value))
			return nil
		})
	})
	if err != nil {
		return err
	}
	if err := rows.flush(); err != nil {
		return err
	}
	e.More = false
	if e.Stale || e.Incomplete {
		in.remark(&e.envelope, 1)
	}
	return nil
}
