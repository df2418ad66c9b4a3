package tables

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// ColumnsOf gives all columns of a table, in the contract's order: identity, members, the engine's other columns, ours.
func ColumnsOf(t *ports.Table) []ports.Column {
	columns := append([]ports.Column{t.Engine[0]}, t.Members...)
	return append(append(columns, t.Engine[1:]...), t.Ours...)
}

// IndexDDL makes an index.
func IndexDDL(table string, x ports.Index) string {
	unique := ""
	if x.Unique {
		unique = "UNIQUE "
	}
	return fmt.Sprintf(`CREATE %sINDEX "%s" ON "%s" (%s)`, unique, x.Name, table, Quoted(x.Columns))
}

// OfFamily gives the tables of a family, in their order.
func OfFamily(f ports.Family) (all []*ports.Table) {
	for _, t := range ports.Tables {
		if t.Kind.Family() == f {
			all = append(all, t)
		}
	}
	return all
}

// TakenOver is what the first write through us would have fixed of a row that another program made: when it came, by the engine's
// date, and its place in lists. enqueued is the time of an item that it tells itself, if it is one.
func TakenOver(id int64, enqueued, created string) ports.First {
	at := timeOf(created)
	e := ports.Entry{ReceivedMs: at.UnixMilli(), Seq: uint64(max(id, 0))}
	key, ok := ports.TimeKey(enqueued)
	if !ok {
		key = ports.KeyOfTime(at)
	}
	return ports.First{OrderKey: e.OrderKey(), ReceivedAt: e.ReceivedAt(), EnqueuedKey: key}
}

// timeOf reads a date as databeacons write it; one that is none becomes the beginning of 1970.
func timeOf(text string) time.Time {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.UnixMilli(0)
}
