package conformance

import "holdfast/ports"

// Which positions are of a store's own history.

var changesHistoryCases = []Case{{
	Topic: "changes", Name: "another-history", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a position that is not of the store's own history fails with conflict: of an epoch that it does not know, or left before that Seq, or further than the store itself",
	Run:  anotherHistory,
}, {
	Topic: "changes", Name: "no-mark", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a host that the store has no mark of is taken as the position says it: nothing of it changes any more",
	Run:  hostWithoutAMark,
}, {
	Topic: "changes", Name: "beyond-the-mark", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "rows of a host that were put beyond its mark are told, and who was told of them can go on from there",
	Run:  rowsBeyondTheMark,
}}

func anotherHistory(c *C) {
	l := local(c)
	first := l.epochs[ports.Queue].ID
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`), upsertOf("c", `{}`))
	l.start(map[ports.Family]uint64{ports.Queue: 2}) // the store was taken back: 3 is given again
	second := l.epochs[ports.Queue].ID
	l.commit(upsertOf("d", `{}`), upsertOf("e", `{}`))
	b := l.second()
	b.commit(upsertOf("f", `{}`))
	foreign := b.epochs[ports.Queue].ID
	l.start(nil)
	third := l.epochs[ports.Queue].ID
	at := func(epoch string, seq uint64) ports.Position {
		return ports.Position{Epoch: epoch, Seqs: map[string]uint64{hostA: seq}}
	}
	for _, row := range []struct {
		what  string
		after ports.Position
		want  ports.Code
	}{
		{"the zero position", ports.Position{}, ""},
		{"Seq 0 of an unknown epoch", at("unknown", 0), ""},
		{"the head in the newest epoch", at(third, 4), ""},
		{"an earlier Seq in the newest epoch", at(third, 1), ""},
		{"the head in the epoch in which it was written", at(second, 4), ""},
		{"the last Seq of an epoch that the store did not go back on", at(first, 2), ""},
		{"a Seq that the store went back on", at(first, 3), ports.Conflict},
		{"an epoch that the store does not know", at("unknown", 1), ports.Conflict},
		{"no epoch", at("", 1), ports.Conflict},
		{"an epoch of another host", at(foreign, 1), ports.Conflict},
		{"a Seq beyond the store", at(third, 5), ports.Conflict},
		{"another host's head, whatever the epoch", ports.Position{Seqs: map[string]uint64{hostB: 1}}, ""},
		{"a Seq beyond another host's mark", ports.Position{Epoch: third, Seqs: map[string]uint64{hostA: 4, hostB: 2}}, ports.Conflict},
		{"another StoreID", ports.Position{StoreID: "another", Epoch: third, Seqs: map[string]uint64{hostA: 4}}, ""},
	} {
		for _, key := range []string{"", "a"} {
			page, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, After: row.after, Key: key})
			if ports.CodeOf(err) != row.want {
				c.Errorf("Changes of key %q after %s is answered %s, want %q", key, row.what, faultText(err), row.want)
			}
			if row.want == "" && err == nil && (page.End == nil || page.End.Epoch != third || page.End.Seqs[hostA] != 4 || page.End.Seqs[hostB] != 1) {
				c.Errorf("Changes of key %q after %s ends at %+v, want 4 and 1 and the newest epoch %q", key, row.what, page.End, third)
			}
		}
	}
}

func hostWithoutAMark(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`))
	l.putRows(itemRow("c1", hostC, 3, `{}`), itemRow("c2", hostC, 5, `{}`))
	for seq, want := range map[uint64][]string{0: {"a@1", "c1@3", "c2@5"}, 3: {"a@1", "c2@5"}, 5: {"a@1"}, 99: {"a@1"}} {
		after := ports.Position{Seqs: map[string]uint64{hostC: seq}}
		rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue, After: after}, nil)
		c.tells("a host without a mark", rows, want...)
		if end.Seqs[hostC] < max(seq, 5) {
			c.Errorf("after %d of a host without a mark the End is %v", seq, end.Seqs)
		}
	}
}

func rowsBeyondTheMark(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`))
	l.putRows(itemRow("b", hostA, 8, `{}`), itemRow("c", hostA, 9, `{}`))
	rows, end := l.walk(ports.ChangesQuery{Family: ports.Queue, Limit: 1}, nil)
	c.tells("rows beyond the mark", rows, "a@1", "b@8", "c@9")
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Queue, After: end}, nil)
	c.tells("after the End of that walk", rows)
	after := ports.Position{Epoch: l.epochs[ports.Queue].ID, Seqs: map[string]uint64{hostA: 8}}
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Queue, After: after}, nil)
	c.tells("after a Seq beyond the mark", rows, "c@9")
}
