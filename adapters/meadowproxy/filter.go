package meadowproxy

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The paths of the REST interface. It ignores a filter that it cannot read and then gives every row, cuts values at a tilde and
// splits lists at commas. So filters are only ever made here, and what cannot be said exactly is said wider: whoever asks looks at
// every row that comes. See wider.

// filter is the text of a filter, stanza by stanza.
type filter struct {
	text strings.Builder
}

// is asks for a column that is a value. A value with a tilde is asked for by a pattern, which lets others through.
func (f *filter) is(column, value string) {
	if !sayable(value) {
		f.add("FBV", column, "LK", wider(value))
		return
	}
	f.add("FBV", column, "EQ", value)
}

// any asks for a column that is one of some values. It gives up, and asks for nothing, where that makes too long a path.
func (f *filter) any(column string, values []string) {
	var list, others []string
	for _, v := range values {
		if listable(v) {
			list = append(list, escaped(v))
		} else {
			others = append(others, v)
		}
	}
	if len(others) == 0 && len(list) == 1 {
		f.is(column, values[0])
		return
	}
	group := len(others) > 0
	or := ""
	if group {
		f.raw("FOP~0~%28~0")
	}
	if len(list) > 0 {
		f.raw("FBL~" + column + "~INN~" + strings.Join(list, ","))
		or = "OR"
	}
	for _, v := range others {
		op := "EQ"
		if !sayable(v) {
			op, v = "LK", wider(v)
		}
		f.add("FBV"+or, column, op, v)
		or = "OR"
	}
	if group {
		f.raw("FCP~0~%29~0")
	}
}

// contains asks for a column that has a text in it, and lets others through: also those whose texts may be in parts.
func (f *filter) contains(column, value string, parts bool) {
	if !parts {
		f.add("FBV", column, "LK", "%"+wider(value)+"%")
		return
	}
	f.raw("FOP~0~%28~0")
	f.add("FBV", column, "LK", "%"+wider(value)+"%")
	f.add("FBVOR", "Extra", "LK", `%"$parts":%`)
	f.raw("FCP~0~%29~0")
}

// blank asks for rows that have nothing in a column, or null where that can be; filled for the others.
func (f *filter) blank(column string, null bool) {
	if !null {
		f.add("FBV", column, "EQ", "")
		return
	}
	f.raw("FOP~0~%28~0")
	f.add("FBV", column, "EQ", "")
	f.add("FBVOR", column, "IN", "0")
	f.raw("FCP~0~%29~0")
}

func (f *filter) filled(column string) { f.add("FBV", column, "GT", "") }

// from and before bound a column. A bound that cannot be said is left out.
func (f *filter) from(column, value string) {
	if sayable(value) {
		f.add("FBV", column, "GE", value)
	}
}

func (f *filter) before(column, value string) {
	if sayable(value) {
		f.add("FBV", column, "LT", value)
	}
}

func (f *filter) until(column, value string) {
	if sayable(value) {
		f.add("FBV", column, "LE", value)
	}
}

// numbers asks for an integer column that is one of some numbers.
func (f *filter) numbers(column string, values []int64) {
	list := make([]string, len(values))
	for i, v := range values {
		list[i] = strconv.FormatInt(v, 10)
	}
	f.raw("FBL~" + column + "~INN~" + strings.Join(list, ","))
}

// beyond asks for a larger number.
func (f *filter) beyond(column string, n int64) {
	f.add("FBV", column, "GT", strconv.FormatInt(n, 10))
}

// deletedToo shows the deleted rows as well: the interface hides them unless a filter names the column.
func (f *filter) deletedToo() { f.raw("FBV~Deleted~GE~0") }

func (f *filter) onlyDeleted() { f.raw("FBV~Deleted~EQ~1") }

// by sorts. The last column of an order is always the identity: without that, pages overlap.
func (f *filter) by(desc bool, columns ...string) {
	direction := "~ASC~0"
	if desc {
		direction = "~DESC~0"
	}
	for _, c := range columns {
		f.raw("FSF~" + c + direction)
	}
}

// add adds one stanza. Columns are names of the schema.
func (f *filter) add(instruction, column, operator, value string) {
	f.raw(instruction + "~" + column + "~" + operator + "~" + escaped(value))
}

func (f *filter) raw(stanza string) {
	if f.text.Len() > 0 {
		f.text.WriteByte('~')
	}
	f.text.WriteString(stanza)
}

// sayable says whether a value can stand in a filter as it is.
func sayable(value string) bool {
	return value != "" && !strings.ContainsAny(value, "~\x00") && utf8.ValidString(value)
}

// listable says whether a value can stand in a list.
func listable(value string) bool {
	return sayable(value) && !strings.ContainsRune(value, ',') && strings.TrimSpace(value) == value
}

// wider is a pattern that a value fits: any one character where there is one that a filter or a pattern reads otherwise.
func wider(value string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '~', '%', '\\', '[', 0, utf8.RuneError:
			return '_'
		}
		return r
	}, value)
}

// escaped writes a value for a path: everything but letters, digits and the few signs that are nobody's.
func escaped(value string) string {
	const hex = "0123456789ABCDEF"
	out := make([]byte, 0, len(value)+16)
	for i := range len(value) {
		c := value[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.':
			out = append(out, c)
		default:
			out = append(out, '%', hex[c>>4], hex[c&15])
		}
	}
	return string(out)
}
