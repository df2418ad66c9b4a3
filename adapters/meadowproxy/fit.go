package meadowproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/ports"
)

// What a column of an engine gives back as it was given. What it does not stands raw in Extra, and in the column what comes near it,
// for people and filters.

// room is how much text a column takes: characters and bytes, 0 for any number.
func (c column) room(e engine) (characters, bytes int) {
	switch {
	case e == engineSQLite:
		return 0, 0
	case strings.HasPrefix(c.native, "longtext"):
		return 0, math.MaxInt32
	case strings.HasPrefix(c.native, "mediumtext"):
		return 0, 1<<24 - 1
	case strings.HasPrefix(c.native, "tinytext"):
		return 0, 255
	case e == engineMySQL && strings.HasPrefix(c.native, "text"):
		return 0, 1<<16 - 1
	case strings.Contains(c.native, "text"):
		return 0, 0
	}
	return int(max(0, c.size)), 0
}

// text says whether a column gives a text back, and what stands there if not.
func (c column) text(e engine, text string) (stands string, exact bool) {
	characters, bytes := c.room(e)
	if characters > 0 && utf8.RuneCountInString(text) > characters {
		text, exact = string([]rune(text)[:characters]), false
	} else {
		exact = true
	}
	if bytes > 0 && len(text) > bytes {
		text, exact = cutAt(text, bytes), false
	}
	if e.folds() && strings.HasSuffix(text, " ") && !strings.Contains(c.native, "text") {
		exact = false // CHAR does not keep spaces at the end
	}
	if strings.IndexByte(text, 0) >= 0 {
		text, exact = strings.ReplaceAll(text, "\x00", "\ufffd"), false
	}
	return text, exact
}

// cutAt cuts a text to some bytes, at the border of a character.
func cutAt(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}

// largestWhole is the largest integer that the databeacon itself counts exactly: it is a JavaScript program.
const largestWhole = 1<<53 - 1

// integer says whether a column gives an integer back.
func (c column) integer(e engine, n int64) (stands int64, exact bool) {
	limit := int64(largestWhole)
	switch {
	case e == engineSQLite, strings.HasPrefix(c.native, "bigint"), strings.HasPrefix(c.native, "int8"):
	case strings.HasPrefix(c.native, "smallint"), strings.HasPrefix(c.native, "int2"):
		limit = math.MaxInt16
	case strings.HasPrefix(c.native, "tinyint"):
		limit = math.MaxInt8
	default:
		limit = math.MaxInt32
	}
	switch {
	case n > limit:
		return limit, false
	case n < -limit:
		return -limit, false
	}
	return n, true
}

// largestDecimal bounds numeric(10,2), in which other engines than SQLite keep what the schema calls a float.
const largestDecimal = 99_999_999.99

// float says whether a column gives a number back.
func (c column) float(e engine, f float64) (stands float64, exact bool) {
	if e == engineSQLite || strings.HasPrefix(c.native, "double") || strings.HasPrefix(c.native, "float8") {
		return f, true
	}
	near := math.Max(-largestDecimal, math.Min(largestDecimal, math.Round(f*100)/100))
	return near, near == f
}

// boolean is a boolean as the engine writes it.
func (c column) boolean(b bool) []byte {
	if strings.HasPrefix(c.native, "bool") {
		return strconv.AppendBool(nil, b)
	}
	if b {
		return []byte("1")
	}
	return []byte("0")
}

// shape is a column's value as JSON, and whether the engine gives it back.
func (w *way) shape(c column, t ports.ColumnType, value any) (text []byte, exact bool) {
	switch v := value.(type) {
	case int64:
		n, exact := c.integer(w.engine, v)
		return strconv.AppendInt(nil, n, 10), exact
	case float64:
		f, exact := c.float(w.engine, v)
		return strconv.AppendFloat(nil, f, 'f', -1, 64), exact
	case bool:
		return c.boolean(v), true
	case string:
		if t == ports.Opaque {
			return ports.AppendQuoted(nil, v), true // what is too large goes in parts
		}
		v, exact := c.text(w.engine, v)
		return ports.AppendQuoted(nil, v), exact
	}
	return []byte(`""`), false
}

// A key that its column does not give back, or that the engine takes for another row's, stands under another form: what of it is
// plain, and a digest. The key itself stands in Extra.

const digestLength = 32

// plain says whether a key can stand in its column as it is.
func (w *way) plain(table, name, key string) bool {
	c, ok := w.column(table, name)
	if !ok {
		return true
	}
	_, exact := c.text(w.engine, key)
	return exact
}

// other is the other form of a key.
func (w *way) other(table, name, key string) string {
	width := 128
	if c, ok := w.column(table, name); ok {
		if characters, _ := c.room(w.engine); characters > 0 {
			width = min(width, characters)
		}
	}
	sum := sha256.Sum256([]byte(key))
	digest := hex.EncodeToString(sum[:])[:digestLength]
	head := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' {
			return r
		}
		return '_'
	}, key)
	return head[:max(0, min(len(head), width-digestLength-1))] + "#" + digest
}

// forms are the forms under which a key may stand, the one that is tried first before the other.
func (w *way) forms(table, name, key string) []string {
	switch {
	case !w.plain(table, name, key):
		return []string{w.other(table, name, key)}
	case w.engine.folds():
		return []string{key, w.other(table, name, key)}
	}
	return []string{key}
}
