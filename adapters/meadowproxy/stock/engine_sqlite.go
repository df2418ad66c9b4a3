package stock

// SQLite behind node:sqlite. Types hold anything, numbers are bound as doubles, and what cannot be bound is refused by its place.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

type sqliteEngine struct{}

func (sqliteEngine) name() string                         { return "sqlite" }
func (sqliteEngine) check(describedTable) *failure        { return nil }
func (sqliteEngine) now(t time.Time) string               { return t.UTC().Format(time.DateTime) }
func (sqliteEngine) wide(*table, map[string]any) *failure { return nil }

func (sqliteEngine) declare(c described, _ bool) string {
	switch c.kind() {
	case kindID:
		return "INTEGER PRIMARY KEY AUTOINCREMENT"
	case kindInteger, kindBool:
		return "INTEGER NOT NULL DEFAULT 0"
	case kindDecimal:
		return "REAL"
	case kindText:
		if c.size() > 0 {
			return "TEXT NOT NULL DEFAULT ''"
		}
	case kindDate:
	}
	return "TEXT" + c.notNull()
}

func (sqliteEngine) native(_ *table, c *column) (string, *int64, *string) {
	return c.declared, nil, c.standard
}

func (sqliteEngine) bind(_ *column, v value, at int) (any, *failure) {
	switch {
	case v.isNull():
		return nil, nil
	case v.isBool():
		return int64(bit(v.truth())), nil
	case v.isNumber():
		return v.number(), nil
	case v.isString():
		return v.text(), nil
	case v.isArray():
		if items := v.items(); len(items) == 1 && !items[0].isObject() && !items[0].isArray() {
			return sqliteEngine{}.bind(nil, items[0], at)
		}
	}
	return nil, unbindable(at)
}

func unbindable(at int) *failure {
	return &failure{
		text: fmt.Sprintf("Provided value cannot be bound to SQLite parameter %d.", at), code: "ERR_INVALID_ARG_TYPE",
		own: object{{"code", of("ERR_INVALID_ARG_TYPE")}},
	}
}

func (sqliteEngine) key(_ *column, text string) (any, *failure) { return text, nil }

// safe is the largest integer that node:sqlite reads.
const safe = 1<<53 - 1

func (sqliteEngine) show(_ *column, v any) ([]byte, *failure) {
	switch n := v.(type) {
	case int64:
		if n > safe || n < -safe {
			return nil, &failure{
				text: "Value is too large to be represented as a JavaScript number: " + strconv.FormatInt(n, 10), code: "ERR_OUT_OF_RANGE",
				own: object{{"code", of("ERR_OUT_OF_RANGE")}},
			}
		}
	case float64:
		if math.IsInf(n, 0) {
			return []byte("null"), nil
		}
	}
	return wholes(v), nil
}

func (sqliteEngine) quoted(_ *table, column string, _ bool) string { return "`" + column + "`" }
func (sqliteEngine) from(t *table) string                          { return "* FROM " + t.name }

// refuse is an error of node:sqlite.
func refuse(text string, errcode int, errstr string) *failure {
	return &failure{
		text: text, code: "ERR_SQLITE_ERROR",
		own: object{{"code", of("ERR_SQLITE_ERROR")}, {"errcode", of(errcode)}, {"errstr", of(errstr)}},
	}
}

func (sqliteEngine) noTable(name string) *failure {
	return refuse("no such table: "+name, 1, "SQL logic error")
}

func (sqliteEngine) noColumn(t *table, column, place string) *failure {
	if place == inInsert {
		return refuse("table "+t.name+" has no column named "+column, 1, "SQL logic error")
	}
	return refuse("no such column: "+column, 1, "SQL logic error")
}

func (sqliteEngine) null(t *table, c *column) *failure {
	return refuse("NOT NULL constraint failed: "+t.name+"."+c.name, 1299, "constraint failed")
}

func (sqliteEngine) unique(t *table, columns []string, _ map[string]any) *failure {
	var full []string
	for _, c := range columns {
		full = append(full, t.name+"."+c)
	}
	return refuse("UNIQUE constraint failed: "+strings.Join(full, ", "), 2067, "constraint failed")
}

func (sqliteEngine) syntax(near string) *failure {
	return refuse(`near "`+near+`": syntax error`, 1, "SQL logic error")
}

func (sqliteEngine) listed(at int, _ []string) *failure { return unbindable(at) }
func (sqliteEngine) other(err error) *failure           { return refuse(plain(err), 1, "SQL logic error") }
