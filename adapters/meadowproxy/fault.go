package meadowproxy

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"holdfast/ports"
)

// What an error of the REST interface means. An engine's own code decides; words do only where the engine has one code for
// everything, as node's SQLite has.

// fault is what an answer says went wrong.
type fault struct {
	status int
	code   string
	number int // SQLite's own code, which node's gives in bulk answers only
	text   string
}

// meaning is what a fault means.
type meaning int

const (
	faultRefused   meaning = iota // this row can never be kept so
	faultDuplicate                // another row has its key
	faultVague                    // perhaps a duplicate: the engine does not say
	faultForgotten                // the table, its endpoint or a column is not there
	faultMissing                  // no row has the identity
	faultNotNow                   // the database cannot
	faultFull
	faultDenied
	faultTooLong
)

// codes are the codes of engines and drivers.
var codes = map[meaning][]string{
	faultDuplicate: {"23505", "ER_DUP_ENTRY", "ER_DUP_ENTRY_WITH_KEY_NAME", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY", "2601", "2627", "1062"},
	faultForgotten: {"42703", "42P01", "ER_BAD_FIELD_ERROR", "ER_NO_SUCH_TABLE"},
	faultTooLong:   {"22001", "ER_DATA_TOO_LONG", "SQLITE_TOOBIG", "ER_NET_PACKET_TOO_LARGE"},
	faultFull:      {"53100", "SQLITE_FULL", "ER_DISK_FULL", "ER_RECORD_FILE_FULL", "ENOSPC"},
	faultDenied:    {"42501", "28000", "28P01", "ER_ACCESS_DENIED_ERROR", "ER_TABLEACCESS_DENIED_ERROR", "ER_DBACCESS_DENIED_ERROR"},
	faultNotNow: {
		"40001", "40P01", "55P03", "25006", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_READONLY", "SQLITE_IOERR", "SQLITE_CANTOPEN", "ER_LOCK_WAIT_TIMEOUT",
		"ER_LOCK_DEADLOCK", "ER_CON_COUNT_ERROR", "ER_OPTION_PREVENTS_STATEMENT", "ER_SERVER_SHUTDOWN", "ER_QUERY_INTERRUPTED", "ECONNREFUSED", "ECONNRESET",
		"ETIMEDOUT", "EPIPE", "ENOTFOUND", "EHOSTUNREACH", "PROTOCOL_CONNECTION_LOST", "PROTOCOL_ENQUEUE_AFTER_FATAL_ERROR", "ESOCKET", "ETIMEOUT",
	},
}

// classes are the classes of SQLSTATE that speak of the server: connection, resources, operator, system.
var classes = []string{"08", "53", "57", "58"}

// phrases are what SQLite says under its one code.
var phrases = map[meaning][]string{
	faultForgotten: {"no such table", "no such column", "has no column named"},
	faultNotNow:    {"database is locked", "database table is locked", "database is busy", "disk i/o error", "readonly database", "unable to open", "database is not open", "connection", "terminat", "timeout", "timed out"},
	faultFull:      {"disk is full"},
	faultTooLong:   {"too big"},
}

// numbers are SQLite's primary codes.
var numbers = map[int]meaning{
	5: faultNotNow, 6: faultNotNow, 8: faultNotNow, 10: faultNotNow, 14: faultNotNow, // busy, locked, read-only, I/O, cannot open
	13: faultFull, 18: faultTooLong,
}

const (
	numberUnique     = 2067
	numberPrimaryKey = 1555
)

func (f *fault) meaning() meaning {
	if f.number == numberUnique || f.number == numberPrimaryKey {
		return faultDuplicate
	}
	if m, known := numbers[f.number&0xff]; known {
		return m
	}
	for m, list := range codes {
		if slices.Contains(list, f.code) {
			return m
		}
	}
	if len(f.code) == 5 && slices.Contains(classes, f.code[:2]) {
		return faultNotNow
	}
	if vague(f.code) {
		text := strings.ToLower(f.text)
		for m, list := range phrases {
			if slices.ContainsFunc(list, func(p string) bool { return strings.Contains(text, p) }) {
				return m
			}
		}
		return faultVague
	}
	return faultRefused
}

// vague says whether a code stands for everything that can go wrong, so that only looking tells whether a key was taken.
func vague(code string) bool {
	switch code {
	case "", "ERR_SQLITE_ERROR", "SQLITE_ERROR", "SQLITE_CONSTRAINT", "EREQUEST":
		return true
	}
	return false
}

// readFault takes an answer that is no success apart.
func (r *reply) readFault() (f fault, m meaning) {
	f.status = r.status
	ours := false
	err := ports.ScanObject(r.body, ports.MaxDepth, func(name, value []byte) error {
		switch string(name) {
		case `"Error"`, `"message"`:
			f.text = short(textOf(value))
		case `"Code"`:
			f.code = codeOf(value)
		case `"StatusCode"`:
			ours = true
		}
		return nil
	})
	switch {
	case r.status == 405, r.status == 404 && (err != nil || !ours):
		f.text = "the endpoint is not there"
		return f, faultForgotten
	case r.status == 404:
		return f, faultMissing
	case r.status == 413, r.status == 431:
		return f, faultTooLong
	case r.status == 401, r.status == 403:
		return f, faultDenied
	case r.status < 400, r.status == 408, r.status == 429, r.status == 502, r.status == 503, r.status == 504:
		return f, faultNotNow
	}
	return f, f.meaning()
}

// codeOf is a code as a text or a number.
func codeOf(raw []byte) string {
	if len(raw) > 0 && raw[0] == '"' {
		return textOf(raw)
	}
	return string(raw)
}

// rowFault reads the Error object of one row of a bulk answer.
func rowFault(raw []byte) (f fault, m meaning) {
	f.status = 500
	if !bytes.HasPrefix(raw, []byte("{")) {
		f.text = short(textOf(raw))
		return f, f.meaning()
	}
	_ = ports.ScanObject(raw, ports.MaxDepth, func(name, value []byte) error { // what cannot be read says nothing
		switch strings.ToLower(string(name)) {
		case `"code"`:
			f.code = codeOf(value)
		case `"errcode"`:
			f.number, _ = strconv.Atoi(codeOf(value))
		case `"error"`, `"message"`:
			f.text = short(textOf(value))
		}
		return nil
	})
	return f, f.meaning()
}

// err is a fault as the host hears it. Words of the database are cut short: they may have values of the record in them.
func (f *fault) err(op string, m meaning) error {
	code, help := ports.Invalid, "the database does not take it"
	switch m {
	case faultDuplicate:
		code, help = ports.Conflict, "another row of the database has its key"
	case faultForgotten:
		code, help = ports.Unavailable, "the databeacon does not know the table any more"
	case faultMissing:
		code, help = ports.NotFound, "there is no such row"
	case faultNotNow:
		code, help = ports.Unavailable, "the database cannot now"
	case faultFull:
		code, help = ports.Full, "the database has no room"
	case faultDenied:
		code, help = ports.Unauthorized, "the database does not let the databeacon do it"
	case faultTooLong:
		code, help = ports.TooLarge, "something in it is too long for the database"
	case faultRefused, faultVague:
	}
	e := ports.Errorf(code, op, "%s (status %d%s): %s", help, f.status, named(f.code), f.text)
	if m == faultForgotten {
		e.Field = ports.FieldBootstrap
	}
	return e
}

func named(code string) string {
	if code == "" {
		return ""
	}
	return ", code " + short(code)
}

// textOf is a JSON text decoded; "" for anything else.
func textOf(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	text, _ := ports.Unquote(raw)
	return text
}
