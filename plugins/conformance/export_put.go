package conformance

import (
	"fmt"
	"slices"

	"holdfast/ports"
)

// Walking through, counting and pruning what was put: for every backend that offers it, a local store or not.

var exportPut = Case{
	Topic: "export", Name: "put", Needs: []string{"Exporter"},
	Must: "Export gives every record that was put once, whole, in the bytewise order of keys, an item before its events and attempts, in pages of any size",
	Run:  exportsPut,
}

var surveyPut = Case{
	Topic: "survey", Name: "put", Needs: []string{"Surveyor"},
	Must: "Survey counts the records of each kind that were put; one that was put twice is one, and a removed one is none",
	Run:  surveysPut,
}

var prunePut = Case{
	Topic: "prune", Name: "put", Needs: []string{"Pruner"}, Reads: true,
	Must: "Prune removes what was put, is finished and ended before the time given, counts it, and keeps everything else",
	Run:  prunesPut,
}

func prunesPut(c *C) {
	stays := map[string][]ports.Row{"running": nil, "late": nil}
	var goes []ports.Row
	for _, kind := range c.puttable() {
		ended := "LastEventAt"
		switch kind {
		case ports.KindEvent, ports.KindAttempt:
			continue
		case ports.KindManifest:
			ended = "StopTime"
		}
		goes = append(goes, c.row(kind, "early", 1, fmt.Sprintf(`"Status":"Complete",%q:"2020-01-01T00:00:00Z"`, ended)))
		stays["running"] = append(stays["running"], c.row(kind, "running", 1, fmt.Sprintf(`"Status":"Running",%q:"2020-01-01T00:00:00Z"`, ended)))
		stays["late"] = append(stays["late"], c.row(kind, "late", 1, fmt.Sprintf(`"Status":"Complete",%q:"2026-06-01T00:00:00Z"`, ended)))
	}
	c.put(slices.Concat(goes, stays["running"], stays["late"])...)
	pruned := pruneAll(c, power[ports.Pruner](c), newYear, 1)
	if n := pruned.Items + pruned.Manifests; n != int64(len(goes)) {
		c.Errorf("Prune says that it removed %d records, want %d", n, len(goes))
	}
	for _, r := range goes {
		if slices.Contains(c.kinds(), r.Kind) {
			c.lacks("after Prune", r)
		}
	}
	for _, rows := range stays {
		for _, r := range rows {
			if slices.Contains(c.kinds(), r.Kind) {
				c.holds("after Prune", r)
			}
		}
	}
}

// everyKind makes the rows of a key, of each kind that the backend keeps.
func (c *C) everyKind(key string) (rows []ports.Row) {
	for _, kind := range c.puttable() {
		switch kind {
		case ports.KindEvent:
			rows = append(rows, c.said(kind, key, 1, "enqueued"), c.said(kind, key, 2, "completed"))
		case ports.KindAttempt:
			rows = append(rows, c.said(kind, key, 10, "Error"), c.said(kind, key, 2, "Error"))
		default:
			rows = append(rows, c.said(kind, key, 1, "Complete"))
		}
	}
	return rows
}

func exportsPut(c *C) {
	var all []ports.Row
	for _, key := range slices.Backward(exportKeys) {
		rows := c.everyKind(key)
		c.put(rows...)
		all = append(all, rows...)
	}
	e := power[ports.Exporter](c)
	for _, f := range c.declared.Families {
		for _, limit := range []int{0, 1, 3} {
			rows := exportAll(c, e, f, limit, nil)
			for i := 1; i < len(rows); i++ {
				if a, b := &rows[i-1], &rows[i]; exportOrderOf(a, b) > 0 {
					c.Errorf("in pages of %d, %s of key %q is given before %s of key %q", limit, idOf(a), a.Key, idOf(b), b.Key)
				}
			}
			if len(rows) != len(shelfOf(rows)) {
				c.Errorf("in pages of %d, %d rows of %s are given, of %d records", limit, len(rows), f, len(shelfOf(rows)))
			}
			c.sameShelf("exported", shelfOf(rows), shelfOf(all).only(f))
		}
	}
}

func surveysPut(c *C) {
	rows := append(c.everyKind("a"), c.everyKind("b")...)
	c.put(rows...)
	c.put(rows...)
	want := map[ports.Kind]int64{}
	for i := range rows {
		want[rows[i].Kind]++
	}
	if slices.Contains(c.declared.Families, ports.Manifest) {
		c.put(c.gone(rows[slices.IndexFunc(rows, func(r ports.Row) bool { return r.Kind == ports.KindManifest })]))
		want[ports.KindManifest]--
	}
	s, err := power[ports.Surveyor](c).Survey(c.Ctx)
	if err != nil {
		c.Fatalf("Survey: %s", faultText(err))
	}
	for _, kind := range c.puttable() {
		if got := s.Counts[kind]; got != want[kind] || s.Partial {
			c.Errorf("Survey counts %d of kind %s (partial: %t), want %d", got, kind, s.Partial, want[kind])
		}
	}
}
