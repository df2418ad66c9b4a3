package stock

// The actions of the beacon, in the order in which it declares them, and how one work is done.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
)

// Action is something that a databeacon does.
type Action struct {
	Capability string
	Name       string
}

type handler struct {
	Action
	do func(d *Databeacon, settings json.RawMessage) (outputs any, failed string)
}

func handlers() []handler {
	return []handler{
		{Action{"DataBeaconAccess", "ListConnections"}, (*Databeacon).listConnections},
		{Action{"DataBeaconAccess", "ListTables"}, (*Databeacon).listTables},
		{Action{"DataBeaconAccess", "ReadRecords"}, (*Databeacon).readRecords},
		{Action{"DataBeaconAccess", "QueryTable"}, (*Databeacon).queryTable},
		{Action{"DataBeaconManagement", "Introspect"}, (*Databeacon).introspect},
		{Action{"DataBeaconManagement", "IntrospectMeadowPackage"}, (*Databeacon).introspectPackage},
		{Action{"DataBeaconManagement", "EnableEndpoint"}, (*Databeacon).enableEndpoint},
		{Action{"DataBeaconManagement", "DisableEndpoint"}, (*Databeacon).disableEndpoint},
		{Action{"DataBeaconManagement", "UpdateProxyConfig"}, (*Databeacon).updateProxyConfig},
		{Action{"DataBeaconManagement", "CreateConnection"}, (*Databeacon).createConnection},
		{Action{"MeadowProxy", "Request"}, (*Databeacon).request},
		{Action{"DataBeaconSchema", "EnsureSchema"}, (*Databeacon).ensureSchema},
		{Action{"DataBeaconSchema", "IntrospectSchema"}, (*Databeacon).introspectSchema},
	}
}

// Actions lists what the databeacon does, as it declares it.
func (d *Databeacon) Actions() (actions []Action) {
	for _, h := range handlers() {
		actions = append(actions, h.Action)
	}
	return actions
}

// Capabilities lists what the databeacon registers with.
func (d *Databeacon) Capabilities() (capabilities []string) {
	for _, a := range d.Actions() {
		if !slices.Contains(capabilities, a.Capability) {
			capabilities = append(capabilities, a.Capability)
		}
	}
	return capabilities
}

// Behind makes, for each action, what a client of a hub declares: act gets the action and what does a work of it. So whoever has a
// client that speaks to hubs connects a databeacon with it.
func Behind[A any](d *Databeacon, act func(a Action, do func(ctx context.Context, settings json.RawMessage) (outputs any, err error)) A) (declared []A) {
	for _, a := range d.Actions() {
		declared = append(declared, act(a, func(ctx context.Context, settings json.RawMessage) (any, error) {
			outputs, failure := d.Do(ctx, a.Capability, a.Name, settings)
			if failure != "" {
				return nil, errors.New(failure)
			}
			return outputs, nil
		}))
	}
	return declared
}

// Do does one work and gives its outputs, or why it failed. An unknown action is the first one of its capability, and an unknown
// capability is a success that says otherwise.
func (d *Databeacon) Do(ctx context.Context, capability, action string, settings json.RawMessage) (outputs json.RawMessage, failure string) {
	h := resolve(capability, action)
	if h == nil {
		return encode(map[string]any{"StdOut": "Unknown capability: " + capability, "ExitCode": -1, "Result": ""}), ""
	}
	if h.Name == "EnsureSchema" && d.options.Manner == Postgres {
		if alone := d.ensure(1); !alone && d.lacksTables(settings) {
			d.ensure(-1)
			return nil, `duplicate key value violates unique constraint "pg_class_relname_nsp_index"`
		}
		defer d.ensure(-1)
	}
	d.mu.Lock()
	fault := d.fault
	d.mu.Unlock()
	if fault != nil {
		if failed, hit := fault(capability, action, settings); hit {
			return nil, failed
		}
	}
	if err := d.await(ctx); err != nil {
		return nil, err.Error()
	}
	defer d.pass()
	done, failed := h.do(d, settings)
	if failed != "" {
		return nil, failed
	}
	return encode(done), ""
}

func resolve(capability, action string) (found *handler) {
	for _, h := range handlers() {
		if h.Capability != capability {
			continue
		}
		if h.Name == action {
			return &h
		}
		if found == nil {
			found = &h
		}
	}
	return found
}

// ensure counts the EnsureSchema calls under way and says whether there is just one. Postgres does not queue them: the second one
// runs into the tables that the first one is making.
func (d *Databeacon) ensure(n int) (alone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ensuring += n
	return d.ensuring == 1
}

// lacksTables says whether an EnsureSchema has tables to make.
func (d *Databeacon) lacksTables(settings json.RawMessage) bool {
	<-d.turn
	defer d.pass()
	db, _, wanted, failed := d.schemaCall(settings)
	if failed != "" {
		return false
	}
	return slices.ContainsFunc(wanted.Tables, func(t describedTable) bool {
		is, err := db.table(t.Scope)
		return err == nil && is == nil
	})
}
