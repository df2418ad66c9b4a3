package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"holdfast/ports"
)

// verdict is what a SQLSTATE means to us: its code, and what a person should know.
type verdict struct {
	state string // a SQLSTATE, or the class that it begins with
	code  ports.Code
	hint  string
}

const takesNoWrites = "the server takes no writes now (it is read-only or a standby); bring it back or name the primary, or all hosts, in the dsn"

// verdicts is the one table of what the server says; the first that fits holds.
var verdicts = []verdict{
	{"25006", ports.Unavailable, takesNoWrites},
	{"28", ports.Unauthorized, "wrong password or user; check the dsn"},
	{"3D000", ports.Unavailable, "no such database; create it or check the dsn"},
	{"3F000", ports.Unavailable, "no such schema, or none that the role may use; create it, GRANT USAGE on it, or check the option schema"},
	{"42501", ports.Unauthorized, "the role lacks a right; it needs CREATE on the schema to make the tables (on the database where the schema is missing), then SELECT, INSERT, UPDATE and DELETE on them"},
	{"42P01", ports.Unavailable, "a table is missing"},
	{"42703", ports.Unavailable, "a column is missing"},
	{"42704", ports.Unavailable, "the server is too old or knows a setting by another name"},
	{"08P01", ports.Unavailable, "the server or pooler does not follow; behind a pooler set pooler = true"},
	{"53100", ports.Full, "the server's disk is full"},
	{"53300", ports.Unavailable, "the server has no connection left; lower the option pool or raise its max_connections"},
	{"53", ports.Unavailable, "the server is short of something"},
	{"54", ports.TooLarge, "a value is beyond what the server can hold"},
	{"57014", ports.Deadline, "the server ended the statement: its time was over"},
	{"55P03", ports.Unavailable, "another session holds what is needed"},
	{"57", ports.Unavailable, "the server stops, starts or ended the session"},
	{"58", ports.Unavailable, "the server's disk or system fails"},
	{"40", ports.Unavailable, "another transaction was in the way"},
	{"08", ports.Unavailable, "the connection was lost"},
	{"0A000", ports.Unavailable, "the tables changed meanwhile"},
	{"26000", ports.Unavailable, "a prepared statement is gone; behind a pooler set pooler = true"},
	{"42P05", ports.Unavailable, "a prepared statement is there already; behind a pooler set pooler = true"},
	{"XX001", ports.Unavailable, "the database is damaged; restore a backup"},
	{"XX002", ports.Unavailable, "an index is damaged; REINDEX it"},
	{"22", ports.Invalid, "a value that the table cannot hold"},
	{"23", ports.Invalid, "a row that the table's constraints refuse"},
}

func verdictOf(state string) verdict {
	for _, v := range verdicts {
		if strings.HasPrefix(state, v.state) {
			return v
		}
	}
	return verdict{state, ports.Internal, "the server refused a statement"}
}

// stateOf gives the SQLSTATE in an error, "" when the server did not speak.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// fault gives an error its code. What the server says of values, and what the driver knows of the dsn, stays out.
func fault(op string, err error) error {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*ports.Error](err); ok {
		return known
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return serverFault(op, e)
	}
	if lost(err) {
		return ports.Errorf(ports.Unavailable, op, "the connection to the server was lost: %s", reasonOf(err))
	}
	return &ports.Error{Code: ports.CodeOf(err), Op: op, Message: err.Error()}
}

func serverFault(op string, e *pgconn.PgError) *ports.Error {
	v := verdictOf(e.Code)
	parts := []string{"SQLSTATE " + e.Code}
	for _, part := range []struct{ name, value string }{{"table", e.TableName}, {"column", e.ColumnName}, {"constraint", e.ConstraintName}} {
		if part.value != "" {
			parts = append(parts, part.name+" "+part.value)
		}
	}
	text := v.hint + " (" + strings.Join(parts, ", ") + ")"
	if class := e.Code[:min(2, len(e.Code))]; !slices.Contains([]string{"22", "23", "54"}, class) { // those show values
		text += ": " + e.Message
	}
	told := &ports.Error{Code: v.code, Op: op, Message: text}
	if v.code == ports.Unavailable && needsPerson(e) {
		told.Field = ports.FieldObstacle
	}
	return told
}

// needsPerson says that trying again soon is of no use.
func needsPerson(err error) bool {
	state := stateOf(err)
	return slices.Contains([]string{"3D000", "3F000", "42501", "42704"}, state) || strings.HasPrefix(state, "28")
}

// obstacle is a fault of the database that only a person can mend, whatever is written to it.
func obstacle(op, format string, args ...any) *ports.Error {
	e := ports.Errorf(ports.Unavailable, op, format, args...)
	e.Field = ports.FieldObstacle
	return e
}

// lost says whether a connection ended, or may as well have.
func lost(err error) bool {
	var network net.Error
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return false
	}
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgx.ErrTxClosed) || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) || strings.Contains(err.Error(), "conn closed")
}

// again says whether a transaction that failed so may simply be run again: nothing of it is left, or it will be found as done.
func again(err error) bool {
	switch state := stateOf(err); {
	case state == "40001", state == "40P01", state == "23505", state == "0A000", state == "26000", state == "42P05":
		return true
	case state == "57P01", state == "57P02", state == "57P03":
		return true
	case state != "":
		return false
	}
	return lost(err)
}
