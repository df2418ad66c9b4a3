package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"math/bits"
	"strings"

	modernc "modernc.org/sqlite"

	"holdfast/adapters/tables"
)

// link is the writer's own connection, used through the driver directly: no pool, no conversions, every statement prepared
// once and kept. It is used by one goroutine at a time.
type link struct {
	conn  driver.Conn
	texts map[string]*statement
	masks map[maskKey]*statement
}

// maskKey names the statement that writes a set of columns of a table.
type maskKey struct {
	layout *layout
	insert bool
	set    uint64
}

// maxMasks bounds the statements that are kept for sets of columns; callers' records may have any shape.
const maxMasks = 256

type statement struct {
	stmt driver.Stmt
	exec driver.StmtExecContext
	rows driver.StmtQueryContext
	args []driver.NamedValue
	set  uint64 // of a mask's statement: its columns
}

func dial(dsn string) (*link, error) {
	connector, err := modernc.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	conn, err := connector.Connect(context.Background())
	if err != nil {
		return nil, err
	}
	return &link{conn: conn, texts: map[string]*statement{}, masks: map[maskKey]*statement{}}, nil
}

// close gives back the statements and the connection; the engine checkpoints if this was the file's last one.
func (l *link) close() error {
	var all []error
	for _, s := range l.texts {
		all = append(all, s.stmt.Close())
	}
	for _, s := range l.masks {
		all = append(all, s.stmt.Close())
	}
	return errors.Join(append(all, l.conn.Close())...)
}

func (l *link) prepare(text string) (*statement, error) {
	stmt, err := l.conn.(driver.ConnPrepareContext).PrepareContext(context.Background(), text)
	if err != nil {
		return nil, err
	}
	return &statement{stmt: stmt, exec: stmt.(driver.StmtExecContext), rows: stmt.(driver.StmtQueryContext)}, nil
}

// text gives the kept statement of an SQL text. Texts are constants or built from the schema, so their number is small.
func (l *link) text(text string) (*statement, error) {
	if s, ok := l.texts[text]; ok {
		return s, nil
	}
	s, err := l.prepare(text)
	if err == nil {
		l.texts[text] = s
	}
	return s, err
}

// mask gives the statement that inserts or updates exactly the columns of a set; an update has the rowid as its last
// argument. Where too many sets are in use an insert sets all columns, and an update gives up another's statement.
func (l *link) mask(key maskKey) (*statement, error) {
	if s, ok := l.masks[key]; ok {
		return s, nil
	}
	if len(l.masks) >= maxMasks {
		if all := uint64(1)<<len(key.layout.Names) - 1; key.insert && key.set != all {
			return l.mask(maskKey{layout: key.layout, insert: true, set: all})
		}
		for other, s := range l.masks {
			delete(l.masks, other)
			if err := s.stmt.Close(); err != nil {
				return nil, err
			}
			break
		}
	}
	s, err := l.prepare(key.text())
	if err != nil {
		return nil, err
	}
	s.set = key.set
	l.masks[key] = s
	return s, nil
}

func (k maskKey) text() string {
	var names, marks []string
	for at, name := range k.layout.Names {
		if k.set&(1<<at) != 0 {
			names = append(names, name)
			marks = append(marks, "?")
		}
	}
	table := k.layout.Table
	if !k.insert {
		return `UPDATE "` + table.Name + `" SET "` + strings.Join(names, `" = ?, "`) + `" = ? WHERE rowid = ?`
	}
	text := `INSERT INTO "` + table.Name + `" (` + tables.Quoted(names) + `) VALUES (` + strings.Join(marks, ", ") + `)`
	if k.layout == events {
		text += ` ON CONFLICT ("EventGUID") DO NOTHING`
	}
	return text
}

// bind sets the next argument.
func (s *statement) bind(v any) {
	s.args = append(s.args, driver.NamedValue{Ordinal: len(s.args) + 1, Value: v})
}

// run executes the statement with what was bound.
func (s *statement) run() (driver.Result, error) {
	r, err := s.exec.ExecContext(context.Background(), s.args)
	clear(s.args) // lets go of the texts
	s.args = s.args[:0]
	return r, err
}

// runSet runs a mask's statement with the values of its columns and what follows them.
func (s *statement) runSet(values []any, set uint64, more ...any) (driver.Result, error) {
	for ; set != 0; set &= set - 1 {
		s.bind(values[bits.TrailingZeros64(set)])
	}
	for _, v := range more {
		s.bind(v)
	}
	return s.run()
}

// exec runs a text with its arguments.
func (l *link) exec(text string, args ...any) (driver.Result, error) {
	s, err := l.text(text)
	if err != nil {
		return nil, err
	}
	for _, v := range args {
		s.bind(v)
	}
	return s.run()
}

// affected is exec for those who want the number of rows.
func (l *link) affected(text string, args ...any) (int64, error) {
	r, err := l.exec(text, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// once runs a text that is not worth keeping.
func (l *link) once(text string) error {
	s, err := l.prepare(text)
	if err != nil {
		return err
	}
	_, err = s.run()
	return errors.Join(err, s.stmt.Close())
}

// rows begins a query; the caller closes it before the same text is asked again.
func (l *link) rows(text string, args ...any) (driver.Rows, error) {
	s, err := l.text(text)
	if err != nil {
		return nil, err
	}
	for _, v := range args {
		s.bind(v)
	}
	rows, err := s.rows.QueryContext(context.Background(), s.args)
	clear(s.args)
	s.args = s.args[:0]
	return rows, err
}

// query calls each with every row; the slice is reused.
func (l *link) query(text string, each func(row []driver.Value) error, args ...any) (err error) {
	rows, err := l.rows(text, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}

// number gives the first column of the first row as a number; ok is false when there is no row.
func (l *link) number(text string, args ...any) (n int64, ok bool, err error) {
	err = l.query(text, func(row []driver.Value) error {
		if !ok {
			n, _ = row[0].(int64)
			ok = true
		}
		return nil
	}, args...)
	return n, ok, err
}

// word gives the first column of the first row as text, "" when there is no row.
func (l *link) word(text string, args ...any) (word string, err error) {
	err = l.query(text, func(row []driver.Value) error {
		if word == "" {
			word, _ = row[0].(string)
		}
		return nil
	}, args...)
	return word, err
}

// begin opens a transaction; the DSN of a writer makes it IMMEDIATE.
func (l *link) begin() (driver.Tx, error) {
	return l.conn.(driver.ConnBeginTx).BeginTx(context.Background(), driver.TxOptions{})
}
