package sdk

import (
	"cmp"
	"slices"
	"strings"

	"holdfast/ports"
)

// How a list is narrowed and sorted by what stands in its records.

// passing gives the rows whose members have the wanted values (an empty one wants nothing), one of the statuses if there are
// any, and pass what else is asked.
func passing(rows []ports.Row, wanted map[string]string, status []string, also func(*ports.Row, *ports.Record) bool) ([]ports.Row, error) {
	var fault error
	left := slices.DeleteFunc(rows, func(row ports.Row) bool {
		r, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body)
		if err != nil {
			fault = ports.Wrap(ports.Internal, "list", err)
			return true
		}
		columns := r.Project(row.First).Values
		for name, want := range wanted {
			if want != "" && columns[r.Table.Member(name)] != want {
				return true
			}
		}
		is, _ := columns[r.Table.Member("Status")].(string)
		return len(status) > 0 && !slices.Contains(status, is) || !also(&row, r)
	})
	return left, fault
}

// within says whether a key is in a stretch whose ends may be open; from belongs to it, to does not.
func within(key, from, to string) bool { return key >= from && (to == "" || key < to) }

// byColumn sorts items by the values of a column, equal ones by their keys.
func byColumn(rows []ports.Row, column string, desc bool) ([]ports.Row, error) {
	t := ports.Items
	if !slices.ContainsFunc(slices.Concat(t.Engine, t.Members, t.Ours), func(c ports.Column) bool { return c.Name == column }) {
		return nil, ports.InField(ports.Invalid, "OrderBy", "%q is no column of %s", column, t.Name)
	}
	type placed struct {
		row   ports.Row
		value any
	}
	all := make([]placed, 0, len(rows))
	for _, row := range rows {
		value, err := valueOf(&row, column)
		if err != nil {
			return nil, ports.Wrap(ports.Internal, "list", err)
		}
		all = append(all, placed{row, value})
	}
	slices.SortFunc(all, func(a, b placed) int {
		order := cmp.Or(compare(a.value, b.value), strings.Compare(a.row.Key, b.row.Key))
		if desc {
			return -order
		}
		return order
	})
	for i := range all {
		rows[i] = all[i].row
	}
	return rows, nil
}

// valueOf is what stands in a column of an item's row.
func valueOf(row *ports.Row, column string) (any, error) {
	switch column {
	case "EnqueuedAt", "EnqueuedKey": // the same instants, the second in a form that sorts
		return row.First.EnqueuedKey, nil
	case "OrderKey":
		return row.First.OrderKey, nil
	case "Actor":
		return row.First.Actor, nil
	case "Origin":
		return row.First.Origin, nil
	case "ChangeHost":
		return row.Change.Host, nil
	case "ChangeSeq":
		return int64(row.Change.Seq), nil //nolint:gosec // as the column has it
	}
	at, member := ports.Items.Place([]byte(column))
	if !member { // what an engine notes of itself
		return row.First.ReceivedAt, nil
	}
	r, err := ports.ParseRecord(ports.Items, row.Body)
	if err != nil {
		return nil, err
	}
	return r.Project(row.First).Values[at], nil
}

// compare orders two values of one column; nothing is before everything.
func compare(a, b any) int {
	switch first := a.(type) {
	case string:
		if second, same := b.(string); same {
			return strings.Compare(first, second)
		}
	case int64:
		if second, same := b.(int64); same {
			return cmp.Compare(first, second)
		}
	case float64:
		if second, same := b.(float64); same {
			return cmp.Compare(first, second)
		}
	case bool:
		if second, same := b.(bool); same {
			return cmp.Compare(number(first), number(second))
		}
	}
	return cmp.Compare(number(a != nil), number(b != nil))
}

func number(is bool) int {
	if is {
		return 1
	}
	return 0
}
