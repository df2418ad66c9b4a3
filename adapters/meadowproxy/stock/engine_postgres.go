package stock

// Postgres behind node-pg: every parameter is a text that the column's type has to take.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type postgresEngine struct {
	strict bool
	locale bool
}

func (postgresEngine) name() string                  { return "postgresql" }
func (postgresEngine) check(describedTable) *failure { return nil }
func (postgresEngine) now(t time.Time) string        { return t.UTC().Format(isoMillis) }

func (e postgresEngine) declare(c described, widening bool) string {
	standard := func(declared, literal string) string {
		if e.strict || widening {
			return declared + " NOT NULL DEFAULT " + literal
		}
		return declared
	}
	switch c.kind() {
	case kindID:
		return "serial PRIMARY KEY"
	case kindInteger:
		return standard("integer", "0")
	case kindBool:
		return standard("boolean", "false")
	case kindDecimal:
		return "numeric(10,2)"
	case kindDate:
		return "timestamp without time zone"
	}
	if n := c.size(); n > 0 {
		return standard(fmt.Sprintf("character varying(%d)", n), "''") + e.sorted()
	}
	return "text" + c.notNull() + e.sorted()
}

func (e postgresEngine) sorted() string {
	if e.locale {
		return " COLLATE " + localeCollation
	}
	return ""
}

func (postgresEngine) native(t *table, c *column) (string, *int64, *string) {
	if c.primary {
		next := fmt.Sprintf(`nextval('"%s_%s_seq"'::regclass)`, t.name, c.name)
		return "integer", nil, &next
	}
	name, _, _ := strings.Cut(strings.ToLower(c.declared), "(")
	standard := c.standard
	if standard != nil && c.kind == kindText {
		typed := *standard + "::" + name
		standard = &typed
	}
	if c.size > 0 {
		return name, &c.size, standard
	}
	return name, nil, standard
}

func (e postgresEngine) bind(c *column, v value, _ int) (any, *failure) {
	switch {
	case v.isNull():
		return nil, nil
	case v.isObject():
		return e.take(c, v.compact())
	case v.isArray():
		return e.take(c, arrayLiteral(v))
	}
	return e.take(c, v.text())
}

func (e postgresEngine) key(c *column, text string) (any, *failure) {
	if c.kind == kindText {
		return text, e.clean(text)
	}
	return e.take(c, text)
}

// arrayLiteral is how node-pg writes an array: not as JSON.
func arrayLiteral(v value) string {
	var parts []string
	for _, item := range v.items() {
		switch {
		case item.isNull():
			parts = append(parts, "NULL")
		case item.isArray():
			parts = append(parts, arrayLiteral(item))
		default:
			text := item.text()
			if item.isObject() {
				text = item.compact()
			}
			parts = append(parts, `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`)
		}
	}
	return "{" + strings.Join(parts, ",") + "}"
}

// take is a text as a column's type takes it.
func (e postgresEngine) take(c *column, text string) (any, *failure) {
	if f := e.clean(text); f != nil {
		return nil, f
	}
	trimmed := strings.TrimSpace(text)
	switch c.kind {
	case kindInteger, kindID:
		n, err := strconv.ParseInt(trimmed, 10, 64)
		if err != nil && !isInteger(trimmed) {
			return nil, pgError("22P02", `invalid input syntax for type integer: "`+text+`"`)
		}
		if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
			return nil, pgError("22003", `value "`+text+`" is out of range for type integer`)
		}
		return n, nil
	case kindDecimal:
		rounded, number, fits := decimal(trimmed)
		if !number {
			return nil, pgError("22P02", `invalid input syntax for type numeric: "`+text+`"`)
		}
		if !fits {
			return nil, pgError("22003", "numeric field overflow")
		}
		return rounded, nil
	case kindBool:
		switch strings.ToLower(trimmed) {
		case "t", "tr", "tru", "true", "y", "ye", "yes", "on", "1":
			return int64(1), nil
		case "f", "fa", "fal", "fals", "false", "n", "no", "of", "off", "0":
			return int64(0), nil
		}
		return nil, pgError("22P02", `invalid input syntax for type boolean: "`+text+`"`)
	case kindDate:
		t, ok := instant(trimmed)
		if !ok {
			return nil, pgError("22007", `invalid input syntax for type timestamp: "`+text+`"`)
		}
		return e.now(t), nil
	case kindText:
	}
	if c.size > 0 && int64(utf8.RuneCountInString(text)) > c.size {
		// What is over may be spaces only.
		kept := []rune(text)[:c.size]
		if strings.Trim(text[len(string(kept)):], " ") != "" {
			return nil, pgError("22001", fmt.Sprintf("value too long for type character varying(%d)", c.size))
		}
		return string(kept), nil
	}
	return text, nil
}

func (postgresEngine) clean(text string) *failure {
	if strings.Contains(text, "\x00") {
		return pgError("22021", `invalid byte sequence for encoding "UTF8": 0x00`)
	}
	return nil
}

func isInteger(text string) bool {
	digits := strings.TrimLeft(text, "+-")
	return digits != "" && len(text)-len(digits) <= 1 && strings.Trim(digits, "0123456789") == ""
}

func (postgresEngine) show(c *column, v any) ([]byte, *failure) {
	if v == nil {
		return []byte("null"), nil
	}
	switch c.kind {
	case kindBool:
		switch n := v.(type) {
		case bool:
			return encode(n), nil
		case int64:
			return encode(n != 0), nil
		}
	case kindDecimal:
		return twoPlaces(v), nil
	case kindText:
		return encode(textOf(v)), nil
	case kindID, kindInteger, kindDate:
	}
	return wholes(v), nil
}

func (postgresEngine) quoted(t *table, column string, ours bool) string {
	if ours {
		return quote(t.name) + "." + quote(column)
	}
	return quote(column)
}

func (postgresEngine) from(t *table) string { return quote(t.name) + ".* FROM " + quote(t.name) }

// pgError is an error of node-pg.
func pgError(code, text string, more ...member) *failure {
	own := object{
		{"length", of(len(text) + 100)}, {"name", of("error")}, {"severity", of("ERROR")}, {"code", of(code)},
	}
	own = append(own, more...)
	return &failure{text: text, code: code, own: append(own, member{"routine", of("ereport")})}
}

func (postgresEngine) noTable(name string) *failure {
	return pgError("42P01", `relation "`+name+`" does not exist`)
}

func (postgresEngine) noColumn(t *table, column, place string) *failure {
	if place == inInsert || place == inUpdate {
		return pgError("42703", `column "`+column+`" of relation "`+t.name+`" does not exist`)
	}
	return pgError("42703", `column "`+column+`" does not exist`)
}

func (postgresEngine) null(t *table, c *column) *failure {
	return pgError("23502", `null value in column "`+c.name+`" of relation "`+t.name+`" violates not-null constraint`,
		member{"schema", of("public")}, member{"table", of(t.name)}, member{"column", of(c.name)})
}

func (postgresEngine) unique(t *table, columns []string, row map[string]any) *failure {
	name := t.over(columns)
	var values []string
	for _, c := range columns {
		values = append(values, textOf(row[c]))
	}
	detail := `Key ("` + strings.Join(columns, `", "`) + `")=(` + strings.Join(values, ", ") + `) already exists.`
	return pgError("23505", `duplicate key value violates unique constraint "`+name+`"`,
		member{"detail", of(detail)}, member{"schema", of("public")}, member{"table", of(t.name)}, member{"constraint", of(name)})
}

func (postgresEngine) syntax(near string) *failure {
	return pgError("42601", `syntax error at or near "`+near+`"`)
}

func (e postgresEngine) listed(int, []string) *failure { return e.syntax(",") }
func (postgresEngine) other(err error) *failure        { return pgError("XX000", plain(err)) }

// btreeMax is the largest entry of an index.
const btreeMax = 2704

func (postgresEngine) wide(t *table, row map[string]any) *failure {
	for _, x := range t.indexes {
		size := 8
		for _, c := range x.columns {
			size += len(textOf(row[c])) + 4
		}
		if size > btreeMax {
			return pgError("54000", fmt.Sprintf("index row size %d exceeds btree version 4 maximum %d for index \"%s\"", size, btreeMax, x.name))
		}
	}
	return nil
}
