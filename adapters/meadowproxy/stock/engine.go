package stock

// What differs between the engines that a databeacon can have behind it.

import (
	"math/big"
	"strconv"
	"strings"
	"time"
)

// engine is one of them.
type engine interface {
	name() string

	// declare gives the type of a described column, for a new table or for one that is widened.
	declare(c described, widening bool) string
	// check refuses a table that the engine cannot make.
	check(t describedTable) *failure
	// native reads a declared type: its name and the length of a text, and the default as introspection tells it.
	native(t *table, c *column) (name string, length *int64, standard *string)

	// bind is what is stored of a value in a body; at counts the parameters of the statement.
	bind(c *column, v value, at int) (any, *failure)
	// key is what a filter's text is compared as.
	key(c *column, text string) (any, *failure)
	// show is how a stored value is answered.
	show(c *column, v any) ([]byte, *failure)
	now(t time.Time) string

	// quoted is a column as the dialect writes it in a condition; ours is a column of the table that is meant.
	quoted(t *table, column string, ours bool) string
	from(t *table) string // what stands between SELECT and WHERE

	noTable(name string) *failure
	noColumn(t *table, column, place string) *failure
	null(t *table, c *column) *failure
	unique(t *table, columns []string, row map[string]any) *failure
	syntax(near string) *failure
	listed(at int, values []string) *failure // a list where one value belongs
	other(err error) *failure
	// wide refuses a row that an index cannot hold.
	wide(t *table, row map[string]any) *failure
}

// Places where a column is unknown.
const (
	inInsert = "insert"
	inUpdate = "update"
	inWhere  = "where clause"
	inOrder  = "order clause"
	inFields = "field list"
)

// decimal rounds to two places, half away from zero, as numeric(10,2) does; ok is false for what is no number or too large.
func decimal(text string) (rounded string, isNumber, fits bool) {
	r, ok := new(big.Rat).SetString(strings.TrimSpace(text))
	if !ok || strings.ContainsAny(text, "/xXpP_") {
		return "", false, false
	}
	rounded = r.FloatString(2)
	digits := strings.TrimLeft(rounded, "-")
	return rounded, true, len(digits) <= len("12345678.00")
}

// twoPlaces shows what decimal stored.
func twoPlaces(v any) []byte {
	switch n := v.(type) {
	case int64:
		return encode(strconv.FormatInt(n, 10) + ".00")
	case float64:
		return encode(strconv.FormatFloat(n, 'f', 2, 64))
	}
	return encode(textOf(v))
}

// textOf is a stored value as text.
func textOf(v any) string {
	switch n := v.(type) {
	case string:
		return n
	case []byte:
		return string(n)
	case int64:
		return strconv.FormatInt(n, 10)
	case float64:
		return string(encode(n))
	case bool:
		return strconv.FormatBool(n)
	case nil:
		return ""
	}
	return string(encode(v))
}

// wholes shows a column whose stored value says itself what it is.
func wholes(v any) []byte {
	switch n := v.(type) {
	case nil:
		return []byte("null")
	case []byte:
		return encode(string(n))
	default:
		return encode(n)
	}
}

// instant reads the ways in which a time may be written.
func instant(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

const isoMillis = "2006-01-02T15:04:05.000Z"
