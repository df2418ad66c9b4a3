package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"strings"

	_ "modernc.org/sqlite" // the engine that both sides use

	"holdfast/ports"
)

// Bare is the yardstick of speed: modernc through database/sql, one statement prepared for each kind of write, a transaction
// for each batch, synchronous=FULL, every column and index of the schema, values decoded beforehand, and no reading, no
// JSON, no decisions.
type Bare struct {
	db         *sql.DB
	conn       *sql.Conn
	statements map[string]*sql.Stmt
}

// BareBatch is how many writes Bare commits at once.
const BareBatch = 1024

// Write is one decoded write: a statement and its arguments.
type Write struct {
	SQL  string
	Args []any
}

// OpenBare opens a file that a store made, so that both have the same tables and indexes.
func OpenBare(path string) (*Bare, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(FULL)"}, "_txlock": {"immediate"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String())
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Bare{db: db, conn: conn, statements: map[string]*sql.Stmt{}}, nil
}

// Close closes the file.
func (b *Bare) Close() error {
	var all []error
	for _, s := range b.statements {
		all = append(all, s.Close())
	}
	return errors.Join(append(all, b.conn.Close(), b.db.Close())...)
}

// Run commits the writes in batches of BareBatch.
func (b *Bare) Run(ctx context.Context, writes []Write) error {
	for len(writes) > 0 {
		n := min(BareBatch, len(writes))
		if err := b.commit(ctx, writes[:n]); err != nil {
			return err
		}
		writes = writes[n:]
	}
	return nil
}

func (b *Bare) commit(ctx context.Context, writes []Write) error {
	for i := range writes {
		if _, ok := b.statements[writes[i].SQL]; !ok {
			s, err := b.conn.PrepareContext(ctx, writes[i].SQL) //nolint:sqlclosecheck // Close closes them all
			if err != nil {
				return err
			}
			b.statements[writes[i].SQL] = s
		}
	}
	tx, err := b.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for i := range writes {
		// The statements belong to the connection, and so run in its transaction; tx.Stmt would prepare them again.
		if _, err := b.statements[writes[i].SQL].ExecContext(ctx, writes[i].Args...); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Writes decodes entries for Bare: an upsert, an event and an outcome insert a row of all columns, a patch updates the
// columns that it names.
func Writes(entries []ports.Entry, hostID string) ([]Write, error) {
	writes := make([]Write, 0, len(entries))
	for i := range entries {
		w, err := decode(&entries[i], hostID)
		if err != nil {
			return nil, err
		}
		writes = append(writes, w)
	}
	return writes, nil
}

func decode(e *ports.Entry, hostID string) (Write, error) {
	table := ports.Items
	switch e.Action {
	case ports.AppendEvent:
		table = ports.Events
	case ports.UpdateAttemptOutcome:
		table = ports.Attempts
	}
	r, err := ports.ParseRecord(table, e.Record)
	if err != nil {
		return Write{}, err
	}
	now := e.ReceivedAt()
	if e.Action == ports.UpdateWorkItem {
		return patch(e, r, hostID, now), nil
	}
	first := ports.First{ReceivedAt: now, OrderKey: e.OrderKey(), Actor: e.Actor, Origin: e.Origin}
	switch table {
	case ports.Items:
		first.EnqueuedKey, _ = ports.TimeKey(r.Text("EnqueuedAt"))
	case ports.Events:
		first.EmittedAt = now
		r.Set("EventGUID", ports.AppendQuoted(nil, e.EventGUID))
	default:
		r.Set("WorkItemHash", ports.AppendQuoted(nil, e.Key))
		r.Set("AttemptNumber", fmt.Appendf(nil, "%d", e.Number))
	}
	row := r.Project(first)
	names, args := []string{}, []any{}
	add := func(name string, v any) { names, args = append(names, name), append(args, v) }
	for at, c := range table.Members {
		add(c.Name, row.Values[at])
	}
	for _, c := range table.Ours {
		add(c.Name, ours(c.Name, row.Extra, first, hostID, e))
	}
	for _, c := range table.Engine {
		if c.Type == ports.Created || c.Type == ports.Updated {
			add(c.Name, now)
		}
	}
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ")
	text := fmt.Sprintf(`INSERT INTO "%s" ("%s") VALUES (%s) ON CONFLICT DO NOTHING`, table.Name, strings.Join(names, `", "`), marks)
	return Write{SQL: text, Args: args}, nil
}

func ours(name, extra string, first ports.First, hostID string, e *ports.Entry) any {
	switch name {
	case "Extra":
		return extra
	case "EnqueuedKey":
		return first.EnqueuedKey
	case "OrderKey":
		return first.OrderKey
	case "ReceivedAt":
		return first.ReceivedAt
	case "Actor":
		return first.Actor
	case "Origin":
		return first.Origin
	case "ChangeHost":
		return hostID
	case "ChangeSeq":
		return int64(e.Seq)
	}
	return ""
}

func patch(e *ports.Entry, r *ports.Record, hostID, now string) Write {
	var names []string
	var args []any
	for at, raw := range r.Cols {
		if raw != nil {
			v, _ := r.Table.Members[at].Project(raw)
			names, args = append(names, r.Table.Members[at].Name), append(args, v)
		}
	}
	names = append(names, "UpdateDate", "ChangeHost", "ChangeSeq")
	args = append(args, now, hostID, int64(e.Seq), e.Key)
	return Write{
		SQL:  fmt.Sprintf(`UPDATE "%s" SET "%s" = ? WHERE "WorkItemHash" = ?`, r.Table.Name, strings.Join(names, `" = ?, "`)),
		Args: args,
	}
}
