package bench

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	_ "modernc.org/sqlite"

	"holdfast/core"
	"holdfast/ports"
)

// The bare program: what SQLite can do with these rows when nothing else is asked of it.

const bareBatch = 1024

// file is a database with the whole schema, written through one connection with prepared statements.
type file struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// row is a statement and its decoded values.
type row struct {
	statement string
	values    []any
}

func openFile(path string) (*file, error) {
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)")
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	for _, t := range ports.Tables {
		for _, text := range ddl(t) {
			if _, err := conn.ExecContext(context.Background(), text); err != nil {
				return nil, fmt.Errorf("%w: %s", err, text)
			}
		}
	}
	return &file{db: db, conn: conn, stmts: map[string]*sql.Stmt{}}, nil
}

func (f *file) close() {
	_ = f.conn.Close() // its statements go with it
	_ = f.db.Close()
}

func ddl(t *ports.Table) (texts []string) {
	var columns []string
	for _, list := range [][]ports.Column{t.Engine, t.Members, t.Ours} {
		for _, c := range list {
			kind := "TEXT NOT NULL DEFAULT ''"
			switch c.Type {
			case ports.Identity:
				kind = "INTEGER PRIMARY KEY AUTOINCREMENT"
			case ports.Integer, ports.Boolean, ports.Deleted:
				kind = "INTEGER NOT NULL DEFAULT 0"
			case ports.Float:
				kind = "REAL NOT NULL DEFAULT 0"
			}
			columns = append(columns, c.Name+" "+kind)
		}
	}
	texts = append(texts, "CREATE TABLE "+t.Name+" ("+strings.Join(columns, ", ")+")")
	for _, x := range t.Indexes {
		unique := ""
		if x.Unique {
			unique = "UNIQUE "
		}
		texts = append(texts, "CREATE "+unique+"INDEX "+x.Name+" ON "+t.Name+" ("+strings.Join(x.Columns, ", ")+")")
	}
	return texts
}

// commit writes rows in one transaction. The statements belong to the connection: a sql.Tx would prepare them anew.
func (f *file) commit(rows []row) error {
	if err := f.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, r := range rows {
		if err := f.exec(r.statement, r.values...); err != nil {
			return errors.Join(err, f.exec("ROLLBACK"))
		}
	}
	return f.exec("COMMIT")
}

func (f *file) exec(statement string, values ...any) (err error) {
	stmt := f.stmts[statement]
	if stmt == nil {
		if stmt, err = f.conn.PrepareContext(context.Background(), statement); err != nil {
			return err
		}
		f.stmts[statement] = stmt
	}
	_, err = stmt.ExecContext(context.Background(), values...)
	return err
}

const (
	benchHost = "6f0f4ad4-5b0c-4d8e-9d0e-7a3c0f1e2b6d"
	benchTime = "2026-11-30T02:12:14.801Z"
)

var changes atomic.Int64

// decode makes the row of a call: the statement for its action and members, the values of its columns and of ours.
func decode(line []byte) (row, error) {
	call, err := core.ParseCall(line)
	if err != nil {
		return row{}, err
	}
	var record, key []byte
	err = ports.ScanObject(call.Settings, ports.MaxDepth, func(name, value []byte) error {
		switch string(name) {
		case `"WorkItem"`, `"Event"`, `"Patch"`:
			record = value
		case `"WorkItemHash"`:
			key = value
		}
		return nil
	})
	if err != nil {
		return row{}, err
	}
	table := ports.Items
	switch call.Action {
	case ports.AppendEvent:
		table = ports.Events
	case ports.UpdateAttemptOutcome:
		table = ports.Attempts
	}
	r, err := ports.ParseRecord(table, record)
	if err != nil {
		return row{}, err
	}
	seq := changes.Add(1)
	if call.Action == ports.UpdateWorkItem {
		return patch(r, key, seq), nil
	}
	entry := ports.Entry{Seq: uint64(seq), ReceivedMs: firstItem.UnixMilli() + seq, Host: benchHost[:8]}
	conflict := `("WorkItemHash") DO NOTHING`
	switch call.Action {
	case ports.AppendEvent:
		r.Set("EventGUID", ports.AppendQuoted(nil, uuid.Must(uuid.NewV7()).String()))
		conflict = `("EventGUID") DO NOTHING`
	case ports.UpdateAttemptOutcome:
		r.Set("WorkItemHash", key)
		r.Set("AttemptNumber", []byte("1"))
		conflict = `("WorkItemHash", "AttemptNumber") DO UPDATE SET "Outcome" = excluded."Outcome", "EndedAt" = excluded."EndedAt", "Extra" = excluded."Extra"`
	}
	first := ports.First{ReceivedAt: benchTime, OrderKey: entry.OrderKey(), Actor: "anonymous", Origin: ports.OriginHTTP, EmittedAt: benchTime}
	if table == ports.Items {
		first.EnqueuedKey, _ = ports.TimeKey(r.Text("EnqueuedAt"))
	}
	return insert(r, first, seq, conflict), nil
}

func insert(r *ports.Record, first ports.First, seq int64, conflict string) row {
	c := r.Project(first)
	values := c.Values
	names := make([]string, 0, 50)
	for _, m := range r.Table.Members {
		names = append(names, m.Name)
	}
	for _, ours := range r.Table.Ours {
		names = append(names, ours.Name)
		values = append(values, map[string]any{
			"Extra": c.Extra, "OrderKey": first.OrderKey, "ReceivedAt": first.ReceivedAt, "Actor": first.Actor, "Origin": first.Origin,
			"ChangeHost": benchHost, "ChangeSeq": seq, "EnqueuedKey": first.EnqueuedKey,
		}[ours.Name])
	}
	names, values = append(names, "CreateDate"), append(values, benchTime)
	return row{
		"INSERT INTO " + r.Table.Name + ` ("` + strings.Join(names, `", "`) + `") VALUES (?` + strings.Repeat(", ?", len(names)-1) + ") ON CONFLICT " + conflict,
		values,
	}
}

// patch updates the columns that are given, and those that every change moves. Extra changes with them, since it told which
// of them were null; its text is about what is left there.
func patch(r *ports.Record, key []byte, seq int64) row {
	text := "UPDATE " + r.Table.Name + " SET "
	var values []any
	for at, value := range r.Cols {
		if value != nil {
			v, _ := r.Table.Members[at].Project(value)
			text += `"` + r.Table.Members[at].Name + `" = ?, `
			values = append(values, v)
		}
	}
	hash, _ := ports.Unquote(key)
	return row{
		text + `"Extra" = ?, "ChangeSeq" = ?, "UpdateDate" = ? WHERE "WorkItemHash" = ?`,
		append(values, extraLeft, seq, benchTime, hash),
	}
}

const extraLeft = `{"$raw":{"ClaimedAt":null,"CanceledAt":null,"Health":null,"HealthComputedAt":null,"RetryAfter":null,"LastError":null},"RequireAffinityMatch":false,"CreatedAt":"2026-11-30T02:12:14.860Z"}`

func decodeAll(body []byte) ([]row, error) {
	var rows []row
	for line := range bytes.Lines(body) {
		r, err := decode(bytes.TrimSpace(line))
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// bare writes items from..to to a file and gives the time that the database took.
func bare(f *file, workload string, from, to int) (took time.Duration, err error) {
	for _, body := range bulk(workload, from, to, bareBatch) {
		rows, err := decodeAll(body)
		if err != nil {
			return 0, err
		}
		began := time.Now()
		if err := f.commit(rows); err != nil {
			return 0, err
		}
		took += time.Since(began)
	}
	return took, nil
}
