package postgres

import (
	"cmp"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"holdfast/adapters/tables"
	"holdfast/ports"
)

// What a transaction changed is written by a few statements a table: rows come in as arrays, one for each column, and unnest makes
// rows of them again. New rows of a table are one statement; changed ones are one statement for each set of columns that changed.

// maxSets is how many sets of columns of a table are written apart in one transaction; the rows of more become one, of all columns
// that any of them changed.
const maxSets = 12

// flush adds the statements that write what the transaction changed.
func (f *fold) flush(b *pgx.Batch) error {
	for _, l := range layouts {
		f.flushTable(b, l)
	}
	f.flushGraves(b)
	return f.flushEarly(b)
}

// writing is a row with the values of the columns that are set.
type writing struct {
	row    *row
	values []any
	set    uint64
}

func (f *fold) flushTable(b *pgx.Batch, l *layout) {
	var gone []int64
	var fresh []writing
	changed := map[uint64][]writing{}
	var union uint64
	for _, r := range f.written {
		if r.layout != l {
			continue
		}
		if r.id != 0 && (r.hidden || r.next == nil) {
			gone = append(gone, r.id)
		}
		if r.next == nil {
			continue
		}
		c := writing{row: r, values: make([]any, len(l.Names))}
		if r.base != nil {
			if c.set = l.Changes(c.values, r.owner, r.base, r.next); c.set != 0 {
				changed[c.set] = append(changed[c.set], c)
			}
			continue
		}
		l.Values(c.values, r.owner, r.next)
		c.set = tables.Filled(c.values)
		union |= c.set
		fresh = append(fresh, c)
	}
	if len(gone) > 0 {
		slices.Sort(gone)
		b.Queue(`DELETE FROM "`+l.Table.Name+`" WHERE "`+l.id+`" = ANY($1::bigint[])`, gone)
	}
	if l != events { // two hosts that bring the same new records meet in the same order; events come as they happened
		slices.SortFunc(fresh, func(a, b writing) int {
			return cmp.Or(strings.Compare(a.row.key, b.row.key), cmp.Compare(a.row.number, b.row.number))
		})
	}
	if len(fresh) > 0 {
		b.Queue(writeText(textKey{l, union, true}), l.arrays(fresh, union, nil)...)
	}
	for _, set := range merged(l, changed) {
		list := changed[set]
		ids := make([]int64, len(list))
		for i, c := range list {
			ids[i] = c.row.id
		}
		b.Queue(writeText(textKey{l, set, false}), l.arrays(list, set, []any{ids})...)
	}
}

// merged gives the sets that are written, in a fixed order, and makes one of those that are too many.
func merged(l *layout, changed map[uint64][]writing) []uint64 {
	sets := slices.SortedFunc(maps.Keys(changed), func(a, b uint64) int {
		return cmp.Or(cmp.Compare(len(changed[b]), len(changed[a])), cmp.Compare(a, b))
	})
	if len(sets) <= maxSets {
		return sets
	}
	var union uint64
	var rest []writing
	for _, set := range sets[maxSets-1:] {
		union |= set
		for _, c := range changed[set] {
			l.Values(c.values, c.row.owner, c.row.next)
			rest = append(rest, c)
		}
		delete(changed, set)
	}
	changed[union] = append(changed[union], rest...)
	if slices.Contains(sets[:maxSets-1], union) {
		return sets[:maxSets-1]
	}
	return append(sets[:maxSets-1], union)
}

// arrays gives the columns of a set as arrays.
func (l *layout) arrays(list []writing, set uint64, args []any) []any {
	for ; set != 0; set &= set - 1 {
		at := bits.TrailingZeros64(set)
		switch l.Types[at] {
		case ports.Integer:
			args = append(args, column[int64](list, at))
		case ports.Float:
			args = append(args, column[float64](list, at))
		case ports.Boolean:
			args = append(args, column[bool](list, at))
		default:
			args = append(args, column[string](list, at))
		}
	}
	return args
}

func column[T any](list []writing, at int) []T {
	all := make([]T, len(list))
	for i := range list {
		all[i], _ = list[i].values[at].(T)
	}
	return all
}

func arrayOf(t ports.ColumnType) string {
	switch t {
	case ports.Integer:
		return "bigint[]"
	case ports.Float:
		return "double precision[]"
	case ports.Boolean:
		return "boolean[]"
	}
	return "text[]"
}

// textKey names the statement that writes a set of columns of a table.
type textKey struct {
	layout *layout
	set    uint64
	fresh  bool
}

// texts keeps statements: there are few shapes of records, though callers may send any.
var texts = struct {
	sync.Mutex
	all map[textKey]string
}{all: map[textKey]string{}}

const maxTexts = 1000

func writeText(k textKey) string {
	texts.Lock()
	defer texts.Unlock()
	text, ok := texts.all[k]
	if !ok {
		if len(texts.all) >= maxTexts {
			clear(texts.all)
		}
		text = k.text()
		texts.all[k] = text
	}
	return text
}

const utc = "timezone('UTC', now())"

func (k textKey) text() string {
	l := k.layout
	var names, params, sets, fields []string
	if !k.fresh {
		params, fields = append(params, "$1::bigint[]"), append(fields, "id")
	}
	for set := k.set; set != 0; set &= set - 1 {
		at := bits.TrailingZeros64(set)
		params = append(params, fmt.Sprintf("$%d::%s", len(params)+1, arrayOf(l.Types[at])))
		field := fmt.Sprintf("c%d", at)
		fields = append(fields, field)
		names = append(names, l.Names[at])
		sets = append(sets, fmt.Sprintf(`"%s" = v.%s`, l.Names[at], field))
	}
	from := ` FROM unnest(` + strings.Join(params, ", ") + `) AS v(` + strings.Join(fields, ", ") + `)`
	if !k.fresh {
		if l.updated {
			sets = append(sets, `"UpdateDate" = `+utc)
		}
		return `UPDATE "` + l.Table.Name + `" AS t SET ` + strings.Join(sets, ", ") + from + ` WHERE t."` + l.id + `" = v.id`
	}
	dates, values := `, "CreateDate"`, ", "+utc
	if l.updated {
		dates, values = dates+`, "UpdateDate"`, values+", "+utc
	}
	return `INSERT INTO "` + l.Table.Name + `" (` + tables.Quoted(names) + dates + `) SELECT ` + strings.Join(fields, ", ") + values + from
}
