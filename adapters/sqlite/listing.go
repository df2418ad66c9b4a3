package sqlite

import (
	"slices"
	"strings"

	"holdfast/adapters/tables"
)

// listing is a list in SQL: along the one index that gives it in order, with one branch for each value that leads the index.
type listing struct {
	tables.Listing

	layout   *layout
	index    string
	tests    []string
	testArgs []any
}

func listOf(l tables.Listing) *listing {
	list := &listing{Listing: l, layout: layoutOf(l.Table.Kind)}
	order := []string{l.Column, l.Sort}
	if l.Column == "" {
		order = order[1:]
	}
	for _, x := range l.Table.Indexes {
		if len(x.Columns) >= len(order) && slices.Equal(x.Columns[:len(order)], order) {
			list.index = x.Name
			break
		}
	}
	for _, t := range l.Tests {
		if len(t.Values) == 0 {
			list.tests = append(list.tests, `instr("`+t.Column+`", ?) > 0`)
			list.testArgs = append(list.testArgs, t.Part)
			continue
		}
		list.tests = append(list.tests, anyOf(t.Column, t.Values))
		for _, v := range t.Values {
			list.testArgs = append(list.testArgs, v)
		}
	}
	return list
}

// anyOf asks for any of some values of a column.
func anyOf(column string, values []string) string {
	return `"` + column + `" IN (` + strings.TrimSuffix(strings.Repeat("?, ", len(values)), ", ") + `)`
}

// where gives the conditions of one branch, all answered by the index.
func (l *listing) where(branch int) (conditions []string, args []any) {
	conditions = []string{"1"}
	if l.Column != "" {
		conditions, args = append(conditions, `"`+l.Column+`" = ?`), append(args, l.Values[branch])
	}
	return l.window(conditions, args)
}

// anyBranch gives the conditions of all branches at once, for a query that sorts by itself.
func (l *listing) anyBranch() (conditions []string, args []any) {
	for _, v := range l.Values {
		args = append(args, v)
	}
	return l.window([]string{anyOf(l.Column, l.Values)}, args)
}

func (l *listing) window(conditions []string, args []any) ([]string, []any) {
	add := func(condition string, values ...any) {
		conditions = append(conditions, condition)
		args = append(args, values...)
	}
	if l.From != "" {
		add(`"`+l.Sort+`" >= ?`, l.From)
	}
	if l.To != "" {
		add(`"`+l.Sort+`" < ?`, l.To)
	}
	if l.After != nil {
		than := ">"
		if l.Desc {
			than = "<"
		}
		add(`("`+l.Sort+`", "`+l.Key+`") `+than+` (?, ?)`, l.After.Sort, l.After.Key)
	}
	return conditions, args
}

// sql gives the query: sort, key and the columns asked for, in order. columnArgs belong to the columns.
func (l *listing) sql(columns string, columnArgs ...any) (text string, args []any) {
	var branches []string
	for i := range max(1, len(l.Values)) {
		conditions, values := l.where(i)
		args = append(append(args, columnArgs...), values...)
		branches = append(branches, `SELECT "`+l.Sort+`", "`+l.Key+`", `+columns+` FROM "`+l.Table.Name+
			`" INDEXED BY "`+l.index+`" WHERE `+strings.Join(conditions, " AND "))
	}
	direction := " ASC"
	if l.Desc {
		direction = " DESC"
	}
	return strings.Join(branches, " UNION ALL ") + " ORDER BY 1" + direction + ", 2" + direction, args
}
