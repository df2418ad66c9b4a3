package stock

// MySQL or MariaDB behind mysql2, in strict mode, with utf8mb4_unicode_ci.

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type mysqlEngine struct{}

// Limits of the engine: characters of a CHAR, bytes of a TEXT, of an index key and of a row.
const (
	charMax = 255
	textMax = 65535
	keyMax  = 3072
	rowMax  = 65535
)

// reserved are the words that cannot be the name of a column that is written without quotes, as far as somebody might want one.
var reserved = words(`ADD ALL ALTER ANALYZE AND AS ASC BEFORE BETWEEN BY CALL CASE CHANGE CHARACTER CHECK COLUMN CONDITION CONSTRAINT CONTINUE CREATE
	CROSS CURSOR DATABASE DEFAULT DELAYED DELETE DESC DESCRIBE DISTINCT DROP ELSE EXISTS EXIT EXPLAIN FALSE FETCH FOR FORCE FROM FULLTEXT GRANT GROUP
	HAVING IF IGNORE IN INDEX INNER INSERT INTERVAL INTO IS ITERATE JOIN KEY KEYS KILL LEAVE LEFT LIKE LIMIT LINES LOAD LOCK LOOP MATCH NOT NULL ON
	OPTION OR ORDER OUT OUTER PARTITION PRIMARY PROCEDURE PURGE RANGE READ RECURSIVE REFERENCES RELEASE RENAME REPEAT REPLACE REQUIRE RETURN REVOKE
	RIGHT ROWS SCHEMA SELECT SET SHOW SIGNAL SQL TABLE TERMINATED THEN TO TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UPDATE USAGE USE USING VALUES VARYING
	WHEN WHERE WHILE WITH WRITE`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(list) {
		set[w] = true
	}
	return set
}

func (mysqlEngine) name() string { return "mysql" }

func (mysqlEngine) now(t time.Time) string {
	return t.UTC().Truncate(time.Second).Format(isoMillis)
}

func (mysqlEngine) declare(c described, _ bool) string {
	switch c.kind() {
	case kindID:
		return "INTEGER PRIMARY KEY AUTOINCREMENT"
	case kindInteger:
		return "int NOT NULL DEFAULT 0"
	case kindBool:
		return "tinyint NOT NULL DEFAULT 0"
	case kindDecimal:
		return "decimal(10,2)"
	case kindDate:
		return "datetime(0)" // our driver makes a time of what is declared without the precision
	}
	if n := c.size(); n > 0 {
		return fmt.Sprintf("char(%d) NOT NULL DEFAULT '' COLLATE %s", n, collation)
	}
	return "text" + c.notNull() + " COLLATE " + collation
}

func (mysqlEngine) check(t describedTable) *failure {
	row := 0
	for _, c := range t.Schema {
		if reserved[strings.ToUpper(c.Column)] {
			return mysqlEngine{}.syntax(c.Column) // names are written without quotes
		}
		n := c.size()
		if n > charMax {
			return myError("ER_TOO_BIG_FIELDLENGTH", 1074, "42000",
				fmt.Sprintf("Column length too big for column '%s' (max = %d); use BLOB or TEXT instead", c.Column, charMax))
		}
		row += int(n) * 4
	}
	if row > rowMax {
		return myError("ER_TOO_BIG_ROWSIZE", 1118, "42000", fmt.Sprintf(
			"Row size too large. The maximum row size for the used table type, not counting BLOBs, is %d. This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs", rowMax))
	}
	for _, x := range t.Indexes {
		size := 0
		for _, name := range x.Columns {
			c := t.column(name)
			if c == nil {
				return myError("ER_KEY_COLUMN_DOES_NOT_EXITS", 1072, "42000", "Key column '"+name+"' doesn't exist in table")
			}
			if c.kind() == kindText && c.size() == 0 {
				return myError("ER_BLOB_KEY_WITHOUT_LENGTH", 1170, "42000",
					"BLOB/TEXT column '"+name+"' used in key specification without a key length")
			}
			size += max(int(c.size())*4, 4)
		}
		if size > keyMax {
			return myError("ER_TOO_LONG_KEY", 1071, "42000", fmt.Sprintf("Specified key was too long; max key length is %d bytes", keyMax))
		}
	}
	return nil
}

func (mysqlEngine) native(_ *table, c *column) (string, *int64, *string) {
	if c.primary {
		return "int", nil, nil
	}
	name, _, _ := strings.Cut(strings.ToLower(c.declared), "(")
	switch {
	case c.size > 0:
		return name, &c.size, c.standard
	case name == "text":
		length := int64(textMax)
		return name, &length, c.standard
	}
	return name, nil, c.standard
}

func (e mysqlEngine) bind(c *column, v value, _ int) (any, *failure) {
	if v.isNull() {
		return nil, nil
	}
	text := v.text()
	if v.isBool() {
		text = strconv.Itoa(bit(v.truth()))
	}
	switch c.kind {
	case kindInteger, kindBool, kindID:
		f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil && !math.IsInf(f, 0) {
			return nil, myError("ER_TRUNCATED_WRONG_VALUE_FOR_FIELD", 1366, "22007", "Incorrect integer value: '"+text+"' for column '"+c.name+"' at row 1")
		}
		limit := float64(math.MaxInt32)
		if c.kind == kindBool {
			limit = math.MaxInt8
		}
		if f = math.Round(f); f > limit || f < -limit-1 {
			return nil, myError("ER_WARN_DATA_OUT_OF_RANGE", 1264, "22003", "Out of range value for column '"+c.name+"' at row 1")
		}
		return int64(f), nil
	case kindDecimal:
		rounded, number, fits := decimal(text)
		if !number {
			return nil, myError("ER_TRUNCATED_WRONG_VALUE_FOR_FIELD", 1366, "22007", "Incorrect decimal value: '"+text+"' for column '"+c.name+"' at row 1")
		}
		if !fits {
			return nil, myError("ER_WARN_DATA_OUT_OF_RANGE", 1264, "22003", "Out of range value for column '"+c.name+"' at row 1")
		}
		return rounded, nil
	case kindDate:
		t, ok := instant(text)
		if !ok {
			return nil, myError("ER_TRUNCATED_WRONG_VALUE", 1292, "22007", "Incorrect datetime value: '"+text+"' for column '"+c.name+"' at row 1")
		}
		return e.now(t), nil
	case kindText:
	}
	if c.size == 0 {
		if len(text) > textMax {
			return nil, tooLong(c)
		}
		return text, nil
	}
	text = strings.TrimRight(text, " ") // a CHAR gives no trailing spaces back
	if int64(utf8.RuneCountInString(text)) > c.size {
		return nil, tooLong(c)
	}
	return text, nil
}

func tooLong(c *column) *failure {
	return myError("ER_DATA_TOO_LONG", 1406, "22001", "Data too long for column '"+c.name+"' at row 1")
}

// key: a text that is compared with a number counts as the number that it begins with, else as 0.
func (e mysqlEngine) key(c *column, text string) (any, *failure) {
	switch c.kind {
	case kindInteger, kindBool, kindID, kindDecimal:
		trimmed := strings.TrimSpace(text)
		for n := len(trimmed); n > 0; n-- {
			if f, err := strconv.ParseFloat(trimmed[:n], 64); err == nil && !strings.ContainsAny(trimmed[:n], "xXpPnN_") {
				return f, nil
			}
		}
		return int64(0), nil
	case kindDate:
		if t, ok := instant(text); ok {
			return t.UTC().Format(isoMillis), nil
		}
	case kindText:
	}
	return text, nil
}

func (mysqlEngine) show(c *column, v any) ([]byte, *failure) {
	if v == nil {
		return []byte("null"), nil
	}
	switch c.kind {
	case kindDecimal:
		return twoPlaces(v), nil
	case kindText:
		return encode(textOf(v)), nil
	case kindID, kindInteger, kindBool, kindDate:
	}
	return wholes(v), nil
}

func (mysqlEngine) quoted(t *table, column string, ours bool) string {
	if ours {
		return "`" + t.name + "`.`" + column + "`"
	}
	return column
}

func (mysqlEngine) from(t *table) string { return "`" + t.name + "`.* FROM `" + t.name + "`" }

// myError is an error of mysql2.
func myError(code string, errno int, state, text string) *failure {
	return &failure{text: text, code: code, own: object{
		{"code", of(code)}, {"errno", of(errno)}, {"sql", of("...")}, {"sqlState", of(state)}, {"sqlMessage", of(text)},
	}}
}

func (mysqlEngine) noTable(name string) *failure {
	return myError("ER_NO_SUCH_TABLE", 1146, "42S02", "Table 'ultravisor."+name+"' doesn't exist")
}

func (mysqlEngine) noColumn(_ *table, column, place string) *failure {
	if place == inInsert || place == inUpdate {
		place = inFields
	}
	return myError("ER_BAD_FIELD_ERROR", 1054, "42S22", "Unknown column '"+column+"' in '"+place+"'")
}

func (mysqlEngine) null(_ *table, c *column) *failure {
	return myError("ER_BAD_NULL_ERROR", 1048, "23000", "Column '"+c.name+"' cannot be null")
}

func (mysqlEngine) unique(t *table, columns []string, row map[string]any) *failure {
	var values []string
	for _, c := range columns {
		values = append(values, textOf(row[c]))
	}
	entry := strings.Join(values, "-")
	if runes := []rune(entry); len(runes) > 64 {
		entry = string(runes[:64]) + "..."
	}
	return myError("ER_DUP_ENTRY", 1062, "23000", "Duplicate entry '"+entry+"' for key '"+t.over(columns)+"'")
}

func (mysqlEngine) syntax(near string) *failure {
	return myError("ER_PARSE_ERROR", 1064, "42000", "You have an error in your SQL syntax; check the manual that corresponds to your MariaDB server version for the right syntax to use near '"+near+"' at line 1")
}

func (e mysqlEngine) listed(int, []string) *failure { return e.syntax(", ...") }
func (mysqlEngine) other(err error) *failure {
	return myError("ER_UNKNOWN_ERROR", 1105, "HY000", plain(err))
}
func (mysqlEngine) wide(*table, map[string]any) *failure { return nil }
