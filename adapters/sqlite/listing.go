package sqlite

import (
	"strings"

	"holdfast/ports"
)

// listing is a keyset list of a table: the index that gives its rows in order, one branch for each value that leads the
// index, and the tests that no index can answer.
type listing struct {
	layout *layout
	sort   string // the first column of the order
	key    string // the second: the natural key
	desc   bool
	after  *ports.Cursor
	from   string // sort at or after, "" for any
	to     string // sort before, "" for any

	index    string
	column   string   // leads the index; "" when sort does
	values   []string // of column, one branch each
	tests    []string
	testArgs []any
}

// maxBranches is how many values of a filter are merged along the index; more are tested row by row.
const maxBranches = 16

func (l *listing) along(index, column string, values ...string) {
	l.index, l.column = index, column
	for _, v := range values {
		seen := false
		for _, other := range l.values {
			seen = seen || other == v
		}
		if !seen {
			l.values = append(l.values, v)
		}
	}
}

func (l *listing) test(condition string, arg any) {
	l.tests = append(l.tests, condition)
	l.testArgs = append(l.testArgs, arg)
}

// testStatus asks for any of some statuses.
func (l *listing) testStatus(values []string) {
	if len(values) == 0 {
		return
	}
	l.tests = append(l.tests, `"Status" IN (`+strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ")+`)`)
	for _, v := range values {
		l.testArgs = append(l.testArgs, v)
	}
}

// where gives the conditions of one branch, all answered by the index.
func (l *listing) where(branch int) (conditions []string, args []any) {
	conditions = []string{"1"}
	add := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	if l.column != "" {
		add(`"`+l.column+`" = ?`, l.values[branch])
	}
	return l.window(conditions, args)
}

// anyBranch gives the conditions of all branches at once, for a query that sorts by itself.
func (l *listing) anyBranch() (conditions []string, args []any) {
	marks := strings.TrimSuffix(strings.Repeat("?, ", len(l.values)), ", ")
	for _, v := range l.values {
		args = append(args, v)
	}
	return l.window([]string{`"` + l.column + `" IN (` + marks + `)`}, args)
}

func (l *listing) window(conditions []string, args []any) ([]string, []any) {
	add := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	if l.from != "" {
		add(`"`+l.sort+`" >= ?`, l.from)
	}
	if l.to != "" {
		add(`"`+l.sort+`" < ?`, l.to)
	}
	if l.after != nil {
		than := ">"
		if l.desc {
			than = "<"
		}
		add(`("`+l.sort+`", "`+l.key+`") `+than+` (?, ?)`, l.after.Sort, l.after.Key)
	}
	return conditions, args
}

// sql gives the query: sort, key and the columns asked for, in order. columnArgs belong to the columns.
func (l *listing) sql(columns string, columnArgs ...any) (text string, args []any) {
	var branches []string
	for i := range max(1, len(l.values)) {
		conditions, values := l.where(i)
		args = append(append(args, columnArgs...), values...)
		branches = append(branches, `SELECT "`+l.sort+`", "`+l.key+`", `+columns+` FROM "`+l.layout.Table.Name+
			`" INDEXED BY "`+l.index+`" WHERE `+strings.Join(conditions, " AND "))
	}
	direction := " ASC"
	if l.desc {
		direction = " DESC"
	}
	return strings.Join(branches, " UNION ALL ") + " ORDER BY 1" + direction + ", 2" + direction, args
}
