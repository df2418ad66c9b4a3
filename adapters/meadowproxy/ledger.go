package meadowproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"holdfast/ports"
)

// The ledger: what the database itself says of the store. It stands in UVHoldfast, a row for each Name:
//
//	StoreID             random, made once: of hosts that make it at the same moment one succeeds, for the Name is unique
//	Version             ports.SchemaVersion of the newest holdfast that wrote here
//	Position.Queue      and .2, .3, .4: {"Step": token, "After": token, "Position": {"StoreID": ..., "Epoch": ..., "Seqs": {HostID: Seq}}};
//	Position.Manifest   see steps.go
//
// There is one position for each family, and it is replaced whole: it always is that of the host whose batch came last. Another host
// finds its batches refused, begins at zero, and so never takes for copied what was overwritten since. A position that names another
// StoreID than the ledger's own is none.

const (
	keyStoreID = "StoreID"
	keyVersion = "Version"
)

// ledger is what was read.
type ledger struct {
	storeID string
	version int
	last    map[ports.Family]step   // that says how far it is
	turn    map[ports.Family]string // the row that the next step takes
	rows    map[string]int64        // the identities of the rows
}

// ownRow is a row of UVHoldfast.
type ownRow struct {
	IDUVHoldfast int64
	Name         string
	Value        string
}

var ledgerKeys = func() []string {
	keys := []string{keyStoreID, keyVersion}
	for _, f := range ports.Families {
		both := keysPosition(f)
		keys = append(keys, both[:]...)
	}
	return keys
}()

// ledger reads it. A database without a StoreID gives an empty one.
func (w *way) ledger(ctx context.Context, class ports.WorkClass) (ledger, error) {
	l := ledger{last: map[ports.Family]step{}, turn: map[ports.Family]string{}, rows: map[string]int64{}}
	rows, err := w.ownRows(ctx, class, "")
	for _, row := range rows {
		l.rows[row.Name] = row.IDUVHoldfast
		switch row.Name {
		case keyStoreID:
			l.storeID = row.Value
		case keyVersion:
			l.version, _ = strconv.Atoi(row.Value)
		}
	}
	l.steps(rows)
	return l, err
}

// ownRows reads the ledger's rows; more narrows them down further.
func (w *way) ownRows(ctx context.Context, class ports.WorkClass, more string) ([]ownRow, error) {
	path := w.bases[ownTable] + "s/FilteredTo/FBL~Name~INN~" + strings.Join(ledgerKeys, ",") + more + "~FSF~IDUVHoldfast~ASC~0/0/" + strconv.Itoa(2*len(ledgerKeys))
	r, err := w.request(ctx, class, http.MethodGet, path, nil, "")
	if err != nil {
		return nil, err
	}
	var rows []ownRow
	if r.status != http.StatusOK || json.Unmarshal(r.body, &rows) != nil {
		return nil, w.lost(r)
	}
	return slices.DeleteFunc(rows, func(row ownRow) bool { return !slices.Contains(ledgerKeys, row.Name) }), nil
}

// write makes a row of the ledger so: the one of an identity, or a new one where there is none.
func (w *way) write(ctx context.Context, class ports.WorkClass, id int64, key, value string) error {
	method, body := http.MethodPost, map[string]any{"Name": key, "Value": value}
	if id > 0 {
		method, body = http.MethodPut, map[string]any{"IDUVHoldfast": id, "Value": value}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return ports.Wrap(ports.Internal, "meadowproxy: ledger", err)
	}
	r, err := w.request(ctx, class, method, w.bases[ownTable], text, "")
	if err != nil {
		return err
	}
	if _, m := r.readFault(); id > 0 && r.status != http.StatusOK && m == faultMissing { // as in a copy of a young database
		return elsewhere("the row %s of the ledger is not there any more", key)
	}
	var row ownRow
	if r.status != http.StatusOK || json.Unmarshal(r.body, &row) != nil || row.Name != key || row.Value != value {
		return w.lost(r)
	}
	return nil
}

// lost says what an answer about the own table means that is not the one that was asked for. Nothing about it is a record's fault.
func (w *way) lost(r reply) error {
	f, m := r.readFault()
	e := *ports.AsError(f.err("meadowproxy: "+ownTable, m))
	if m == faultMissing || r.status == http.StatusOK {
		e.Field = ports.FieldBootstrap
	}
	if e.Code.Permanent() && m != faultDuplicate {
		e.Code = ports.Unavailable
	}
	return &e
}

// open reads the ledger, and makes the StoreID where there is none.
func (o *outfit) open(ctx context.Context) (ledger, error) {
	const help = "see what the databeacon says in its own log"
	l, err := o.ledger(ctx, ports.ClassProbe)
	if err != nil {
		return l, o.failed(ownTable, err, help)
	}
	if err := o.prove(ctx, l); err != nil {
		return l, err
	}
	if l.version > ports.SchemaVersion {
		return l, ports.InField(ports.Conflict, keyVersion, "the store behind connection %d of %q belongs to a newer holdfast (%d > %d); use that one, or assign another connection",
			o.seat.connection, o.seat.beacon, l.version, ports.SchemaVersion)
	}
	for _, key := range []string{keyStoreID, keyVersion} {
		if err == nil {
			l, err = o.found(ctx, l, key)
		}
	}
	if err != nil {
		return l, o.failed(ownTable, err, help)
	}
	return l, nil
}

// found sees to it that the ledger has a StoreID and this version. A new row that is refused is there already: another host has made
// it, or it was removed, for a removed row still has its key.
func (o *outfit) found(ctx context.Context, l ledger, key string) (ledger, error) {
	value := rand.Text()
	if key == keyVersion {
		value = strconv.Itoa(ports.SchemaVersion)
	}
	if is := l.rows[key]; is > 0 && (key == keyStoreID && l.storeID != "" || key == keyVersion && l.version == ports.SchemaVersion) {
		return l, nil
	}
	refused := o.write(ctx, ports.ClassProbe, l.rows[key], key, value)
	if refused != nil && l.rows[key] == 0 {
		if err := o.restore(ctx, key, value); err != nil {
			return l, err
		}
	}
	l, err := o.ledger(ctx, ports.ClassProbe)
	if err == nil && l.rows[key] == 0 {
		err = refused
	}
	return l, err
}

// restore brings a removed row back, with a value of its own: what was known of the store before is not true any more.
func (o *outfit) restore(ctx context.Context, key, value string) error {
	gone, err := o.ownRows(ctx, ports.ClassProbe, "~FBV~Deleted~EQ~1")
	for _, row := range gone {
		if row.Name != key || err != nil {
			continue
		}
		if _, err = o.request(ctx, ports.ClassProbe, http.MethodGet, o.bases[ownTable]+"/Undelete/"+strconv.FormatInt(row.IDUVHoldfast, 10), nil, ""); err == nil {
			err = o.write(ctx, ports.ClassProbe, row.IDUVHoldfast, key, value)
		}
	}
	return err
}
