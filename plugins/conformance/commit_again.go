package conformance

import (
	"fmt"

	"holdfast/ports"
)

// Batches that do not follow the one before them: behind a gap, or sent before.

func commitGap(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{"N":1}`), upsertOf("b", `{}`))
	right := l.batch(patchOf("a", `{"N":2}`), upsertOf("c", `{}`))
	for _, wrong := range []struct {
		what          string
		after, seq    uint64
		through       uint64
		entry         ports.Entry
		withoutWrites bool
	}{
		{what: "begins behind it", after: 3, seq: 4, through: 4, entry: patchOf("a", `{"N":3}`)},
		{what: "begins before it and ends behind it", after: 1, seq: 3, through: 3, entry: patchOf("a", `{"N":4}`)},
		{what: "begins at 0 and ends behind it", after: 0, seq: 3, through: 3, entry: upsertOf("x", `{}`)},
		{what: "begins behind it and has no entries", after: 5, through: 6, withoutWrites: true},
	} {
		b := ports.CommitBatch{Family: ports.Queue, Epoch: right.Epoch, After: wrong.after, Through: wrong.through}
		if !wrong.withoutWrites {
			wrong.entry.Seq, wrong.entry.ReceivedMs, wrong.entry.Host = wrong.seq, firstMs, l.host[:8]
			b.Entries = []ports.Entry{wrong.entry}
		}
		if _, err := l.try(b); ports.CodeOf(err) != ports.Conflict {
			c.Errorf("the store is at 2; a batch that %s, after %d through %d, is answered %s, want conflict", wrong.what, b.After, b.Through, faultText(err))
		}
		l.isAt(ports.Queue, 2)
	}
	rows := everyRow(c, l.store, "a", "x")
	if len(rows) != 1 || bodyDifference(ports.KindItem, rows[0].Body, []byte(`{"WorkItemHash":"a","N":1}`)) != "" {
		c.Errorf("a refused batch changed something: there are %d records", len(rows))
	}
	if _, err := l.try(right); err != nil {
		c.Errorf("the right batch after the wrong ones: %s", faultText(err))
	}
	l.isAt(ports.Queue, 4)
}

func commitBehindAGap(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`))
	l.seqs[ports.Queue] = 5 // 2 to 5 are missing
	var pending []ports.Pending
	for i := range 4 {
		pending = append(pending, l.send(l.batch(upsertOf(fmt.Sprint("x", i), `{}`))))
	}
	for i, p := range pending {
		if _, err := p.Wait(c.Ctx); ports.CodeOf(err) != ports.Conflict {
			c.Errorf("the store is at 1; of four batches after 5, number %d is answered %s, want conflict", i+1, faultText(err))
		}
	}
	if rows := everyRow(c, l.store, "x0", "x1", "x2", "x3"); len(rows) > 0 {
		c.Errorf("refused batches left %d records", len(rows))
	}
	l.isAt(ports.Queue, 1)
}

func commitOlderEpoch(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{"N":1}`))
	late := l.batch(patchOf("a", `{"N":2}`))
	refused := func(since string) {
		if _, err := l.try(late); ports.CodeOf(err) != ports.Conflict {
			c.Errorf("a batch of the epoch %q is answered %s after %s opened the store, want conflict", late.Epoch, faultText(err), since)
		}
		row, err := l.store.Item(c.Ctx, "a")
		if err != nil || bodyDifference(ports.KindItem, row.Body, []byte(`{"WorkItemHash":"a","N":1}`)) != "" {
			c.Errorf("after it the item is %s, %s", row.Body, faultText(err))
		}
	}
	l.second()
	refused("another host")
	l.seqs[ports.Queue] = 1
	l.start(nil)
	refused("a copy of the host")
	l.commit(patchOf("a", `{"N":3}`))
	l.isAt(ports.Queue, 2)
}

func commitTwin(c *C) {
	l := local(c)
	b := l.batch(
		upsertOf("a", `{"N":1}`), patchOf("nobody", `{"A":1}`), guided(eventOf("a", "g", `{"EventGUID":"g","N":1}`)), guided(eventOf("a", "g", `{"EventGUID":"g","N":2}`)),
		eventOf("a", "g", `{}`), again(eventOf("nobody", "h", `{}`)),
	)
	first, err := l.try(b)
	if err != nil {
		c.Fatalf("Commit: %s", faultText(err))
	}
	l.commit(patchOf("a", `{"N":2}`), upsertOf("nobody", `{}`)) // now each of the entries would be decided otherwise
	check := func(when string) {
		before := shelfOf(everyRow(c, l.store, "a", "nobody"))
		for _, twin := range []struct {
			what     string
			from, to int
			through  uint64
		}{{"the same batch", 0, 6, b.Through}, {"a part of it", 1, 3, 3}, {"its end", 3, 6, b.Through}} {
			part := b
			part.Entries, part.Through = b.Entries[twin.from:twin.to], twin.through
			part.After = part.Entries[0].Seq - 1
			got, err := l.try(part)
			if err != nil {
				c.Errorf("%s, %s again: %s", when, twin.what, faultText(err))
				continue
			}
			if want := first[twin.from:twin.to]; told(got) != told(want) {
				c.Errorf("%s, %s again is decided %s, the first time it was %s", when, twin.what, told(got), told(want))
			}
		}
		c.sameShelf(when+", after late twins", shelfOf(everyRow(c, l.store, "a", "nobody")), before)
		l.isAt(ports.Queue, 8)
	}
	check("at once")
	l.reopen(false)
	check("after a close")
}

func commitTwinOfARemoval(c *C) {
	l := local(c)
	born := l.batch(manifestOf("r", `{"Hash":"r"}`))
	removed := l.batch(removalOf("r"))
	for _, b := range []ports.CommitBatch{born, removed} {
		if _, err := l.try(b); err != nil {
			c.Fatalf("Commit: %s", faultText(err))
		}
	}
	twin := func(b ports.CommitBatch) {
		if d, err := l.try(b); err != nil || len(d) != 1 || d[0].Outcome != ports.Stored {
			c.Errorf("a late twin through %d is decided %s, %s, want stored", b.Through, told(d), faultText(err))
		}
	}
	twin(born)
	if _, err := l.store.Manifest(c.Ctx, "r"); ports.CodeOf(err) != ports.NotFound {
		c.Errorf("a late twin brought a removed manifest back")
	}
	l.commit(manifestOf("r", `{"Hash":"r","N":2}`))
	twin(removed)
	twin(born)
	row, err := l.store.Manifest(c.Ctx, "r")
	if err != nil {
		c.Fatalf("the late twin of a removal took away a manifest that came since: %s", faultText(err))
	}
	if difference := bodyDifference(ports.KindManifest, row.Body, []byte(`{"Hash":"r","N":2}`)); difference != "" {
		c.Errorf("after late twins: %s", difference)
	}
}
