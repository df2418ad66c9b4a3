package meadowproxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"holdfast/ports"
)

// The bootstrap of a seat: tables, columns, the right to reach them, their endpoints, and which store it is. Every step may be
// repeated at any time, by several hosts at once. A step that fails ends the try; the binder begins another one.

// stepTime is how long a databeacon may take for one step: a table can be long to widen.
const stepTime = 30 * time.Second

// Capabilities of a databeacon, besides ports.MeadowProxy.
const (
	schemaCapability     = "DataBeaconSchema"
	managementCapability = "DataBeaconManagement"
	accessCapability     = "DataBeaconAccess"
)

// outfit is a bootstrap that is under way.
type outfit struct {
	*way
	seat seat

	namesakes []connection // other connections of the beacon whose endpoints would stand at the same place
}

// fit bootstraps a seat.
func fit(ctx context.Context, mesh ports.Mesh, s seat, slots int, timeout time.Duration) (*binding, error) {
	o := &outfit{seat: s, way: &way{
		mesh: fence{Mesh: mesh, session: s.session}, beacon: s.beacon, connection: s.connection, slots: slots, timeout: stepTime, known: newKnown(),
		bases: map[string]string{}, columns: map[string]map[string]column{},
	}}
	for _, step := range []func(context.Context) error{o.schema, o.introspect, o.permit, o.endpoints} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	l, err := o.open(ctx)
	if err != nil {
		return nil, err
	}
	o.timeout = timeout
	return &binding{seat: s, way: o.way, own: l}, nil
}

// failed tells a step that failed: which one, in whose words, and what helps.
func (o *outfit) failed(step string, err error, help string) error {
	e := bootstrapping(o.seat, "%s: %s; %s, it is tried again", step, ports.AsError(err).Message, help)
	e.Cause = err
	return e
}

// do makes one step that is an action of the databeacon, and reads what it put out.
func (o *outfit) do(ctx context.Context, capability, action string, settings map[string]any, into any) error {
	settings["IDBeaconConnection"] = o.seat.connection
	outputs, err := o.act(ctx, ports.ClassProbe, capability, action, settings)
	if err != nil {
		return err
	}
	var said struct {
		Success *bool
		Error   string
	}
	switch err := json.Unmarshal(outputs, &said); {
	case err != nil:
		return ports.Errorf(ports.Unavailable, action, "the answer is not what a databeacon gives: %v", err)
	case said.Success != nil && !*said.Success:
		return ports.Errorf(ports.Unavailable, action, "the beacon failed: %s", short(said.Error))
	}
	return ports.Wrap(ports.Unavailable, action, json.Unmarshal(outputs, into))
}

// seen is what IntrospectSchema tells.
type seen struct {
	Engine engine
	Tables []struct {
		Scope          string
		Exists         bool
		MissingColumns []string
	}
}

func (s *seen) exists(table string) bool {
	for _, t := range s.Tables {
		if t.Scope == table {
			return t.Exists
		}
	}
	return false
}

// complete says whether every table is there with all of its columns.
func (s *seen) complete() bool {
	for _, t := range tablesOf() {
		if !s.exists(t.Name) {
			return false
		}
	}
	for _, t := range s.Tables {
		if len(t.MissingColumns) > 0 {
			return false
		}
	}
	return true
}

const schemaHelp = "see that the connection is connected at the databeacon, and that its user may create and alter tables"

// look asks which of the tables and columns there are. It changes nothing.
func (o *outfit) look(ctx context.Context) (s seen, err error) {
	err = o.do(ctx, schemaCapability, "IntrospectSchema", schemaSettings(describe(o.engine, none)), &s)
	if err == nil && s.Engine == "" {
		err = ports.Errorf(ports.Unavailable, "IntrospectSchema", "the answer names no engine; is it a databeacon?")
	}
	return s, err
}

func schemaSettings(d descriptor) map[string]any {
	return map[string]any{"SchemaName": schemaName, "SchemaJSON": d}
}

func none(string) bool { return false }

// schema makes the tables, or widens those that somebody else made, forward-only.
//
// On PostgreSQL an index cannot be added to a table that is there: the databeacon does not quote its columns, and takes an index over
// one column for missing each time. So tables that are there are described without indexes there. Two that make the same table
// at once get in each other's way, and one of them fails: what counts is what is there when one looks again.
func (o *outfit) schema(ctx context.Context) error {
	before, err := o.look(ctx)
	if err != nil {
		return o.failed("IntrospectSchema", err, schemaHelp)
	}
	o.engine = before.Engine
	bare := none
	if o.engine == enginePostgres {
		bare = before.exists
	}
	for try := 0; ; try++ {
		failure := o.ensure(ctx, describe(o.engine, bare))
		after, err := o.look(ctx)
		switch {
		case err != nil:
			return o.failed("IntrospectSchema", err, schemaHelp)
		case after.complete():
			return nil
		case failure == nil:
			failure = errors.New("tables or columns are missing afterwards")
		}
		if try == 1 || ctx.Err() != nil {
			return o.failed("EnsureSchema", failure, schemaHelp)
		}
		bare = after.exists // of which an index may be what failed
	}
}

func (o *outfit) ensure(ctx context.Context, d descriptor) error {
	var made struct{ Engine engine }
	if err := o.do(ctx, schemaCapability, "EnsureSchema", schemaSettings(d), &made); err != nil {
		return err
	}
	o.engine = made.Engine
	return nil
}

// introspect learns what the columns really are, and has the databeacon learn it.
func (o *outfit) introspect(ctx context.Context) error {
	const help = "see that the connection is connected at the databeacon"
	var found struct {
		Tables []struct {
			TableName string
			Columns   []struct {
				Name       string
				NativeType string
				MaxLength  *int64
			}
		}
	}
	if err := o.do(ctx, managementCapability, "Introspect", map[string]any{}, &found); err != nil {
		return o.failed("Introspect", err, help)
	}
	for _, t := range found.Tables {
		columns := map[string]column{}
		for _, c := range t.Columns {
			is := column{native: strings.ToLower(c.NativeType)}
			if c.MaxLength != nil {
				is.size = *c.MaxLength
			}
			columns[c.Name] = is
		}
		o.columns[t.TableName] = columns
	}
	for _, t := range tablesOf() {
		for _, c := range wanted(o.engine, t) {
			if _, has := o.column(t.Name, c.Name); !has {
				return o.failed("Introspect", fmt.Errorf("the table %s has no column %s", t.Name, c.Name), help)
			}
		}
	}
	return nil
}

// ownPaths is what the bridges of Ultravisor let through.
const ownPaths = `^/?1\.0/[^/]+/UV[A-Za-z0-9]*`

// permit has the databeacon let requests to the tables through. What it forbids it was told to forbid, and stays so.
func (o *outfit) permit(ctx context.Context) error {
	const help = "let the databeacon take writes (AllowWrites) and paths below /1.0/"
	var is struct{ ActiveConfig struct{ AllowWrites *bool } }
	err := o.do(ctx, managementCapability, "UpdateProxyConfig", map[string]any{"PathAllowlist": []string{ownPaths}}, &is)
	if writes := is.ActiveConfig.AllowWrites; err == nil && writes != nil && !*writes {
		err = errors.New("its MeadowProxy takes no writes")
	}
	if err != nil {
		return o.failed("UpdateProxyConfig", err, help)
	}
	return nil
}
