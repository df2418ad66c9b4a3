package meadowproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"golang.org/x/text/unicode/norm"

	"holdfast/ports"
)

// Where the tables' endpoints are. A databeacon tells the base of one only when it is enabled for the first time, and enables those
// that it had by itself when it starts. So the base is what EnableEndpoint says, else what the connection's name makes of it if that
// serves, else what EnableEndpoint says after DisableEndpoint, which goes on serving.

// connection is one of a databeacon's.
type connection struct {
	IDBeaconConnection int64
	Name               string
}

// slug is the connection's part of the paths of its endpoints.
func (c connection) slug() string {
	plain := strings.Map(func(r rune) rune {
		if r >= 0x300 && r <= 0x36f {
			return -1
		}
		return r
	}, norm.NFKD.String(c.Name))
	words := strings.FieldsFunc(strings.ToLower(plain), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	slug := strings.Join(words, "-")
	if slug == "" {
		return "conn-" + strconv.FormatInt(c.IDBeaconConnection, 10)
	}
	return slug[:min(len(slug), longestSlug)]
}

const longestSlug = 64

const endpointHelp = "see that the connection is connected at the databeacon"

// endpoints enables every table's endpoint and learns where it is.
func (o *outfit) endpoints(ctx context.Context) error {
	var list struct{ Connections []connection }
	if err := o.do(ctx, accessCapability, "ListConnections", map[string]any{}, &list); err != nil {
		return o.failed("ListConnections", err, endpointHelp)
	}
	var ours *connection
	for i := range list.Connections {
		if list.Connections[i].IDBeaconConnection == o.seat.connection {
			ours = &list.Connections[i]
		}
	}
	if ours == nil {
		return o.failed("ListConnections", fmt.Errorf("the databeacon has no connection %d", o.seat.connection), "assign one that it has")
	}
	for _, c := range list.Connections {
		if c.IDBeaconConnection != ours.IDBeaconConnection && c.slug() == ours.slug() {
			o.namesakes = append(o.namesakes, c)
		}
	}
	for _, t := range tablesOf() {
		base, err := o.endpoint(ctx, t.Name, "/1.0/"+ours.slug()+"/"+t.Name)
		if err != nil {
			return o.failed("EnableEndpoint", fmt.Errorf("%s: %s", t.Name, ports.AsError(err).Message), endpointHelp)
		}
		o.bases[t.Name] = base
	}
	return nil
}

// endpoint enables a table's endpoint and gives its base; guess is where it should be.
func (o *outfit) endpoint(ctx context.Context, table, guess string) (string, error) {
	base, err := o.enable(ctx, table)
	if err != nil {
		return "", err
	}
	if base == "" {
		serves, err := o.serves(ctx, guess)
		if serves || err != nil {
			return guess, err
		}
		if err := o.do(ctx, managementCapability, "DisableEndpoint", map[string]any{"TableName": table}, &struct{}{}); err != nil {
			return "", err
		}
		if base, err = o.enable(ctx, table); err != nil {
			return "", err
		}
	}
	if serves, err := o.serves(ctx, base); !serves || err != nil {
		return "", errors.Join(fmt.Errorf("nothing answers at %q", base), err)
	}
	return base, nil
}

func (o *outfit) enable(ctx context.Context, table string) (base string, err error) {
	var said struct{ EndpointBase string }
	err = o.do(ctx, managementCapability, "EnableEndpoint", map[string]any{"TableName": table}, &said)
	return said.EndpointBase, err
}

// serves says whether a table is read at a base.
func (o *outfit) serves(ctx context.Context, base string) (bool, error) {
	if base == "" {
		return false, nil
	}
	r, err := o.request(ctx, ports.ClassProbe, http.MethodGet, base+"s/0/1", nil, "")
	if err != nil {
		return false, err
	}
	return r.status == http.StatusOK && bytes.HasPrefix(bytes.TrimSpace(r.body), []byte("[")), nil
}

// prove makes sure that the endpoints lead to the connection's own database, where another connection's stand at the same place: the
// databeacon serves only those that were enabled first. Both ways to the own table must then show the same StoreID; where there is
// none yet, nobody else may have such a table.
func (o *outfit) prove(ctx context.Context, l ledger) error {
	for _, other := range o.namesakes {
		direct, err := o.direct(ctx, o.seat.connection)
		if err != nil {
			return o.failed("ReadRecords", err, endpointHelp)
		}
		ours := direct == l.storeID
		if ours && direct == "" {
			_, err := o.direct(ctx, other.IDBeaconConnection)
			ours = err != nil // it has no such endpoint that could stand in the way
		}
		if !ours {
			return o.failed("EnableEndpoint", fmt.Errorf("the connection %d, %q, has its endpoints at the same place, and they lead to its database", other.IDBeaconConnection, other.Name),
				"rename one of the two and restart the databeacon")
		}
	}
	return nil
}

// direct gives the StoreID behind a connection, not through its endpoints.
func (o *outfit) direct(ctx context.Context, number int64) (string, error) {
	at := *o
	at.seat.connection = number
	var found struct{ Records []json.RawMessage }
	if err := at.do(ctx, accessCapability, "ReadRecords", map[string]any{"TableName": ownTable, "Cap": directRows}, &found); err != nil {
		return "", err
	}
	for _, record := range found.Records {
		var row ownRow
		if json.Unmarshal(record, &row) == nil && row.Name == keyStoreID {
			return row.Value, nil
		}
	}
	return "", nil
}

// directRows are more than stand before the StoreID, which is the first row of all.
const directRows = 1000
