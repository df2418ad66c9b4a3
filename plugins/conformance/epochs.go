package conformance

import (
	"fmt"
	"time"

	"holdfast/ports"
)

// What a local store knows of itself and of the hosts that open it.

var epochCases = []Case{{
	Topic: "epochs", Name: "unknown-host", Needs: needLocal,
	Must: "Stand tells a random StoreID, nothing of a host that never opened the store, and changes nothing",
	Run:  unknownHost,
}, {
	Topic: "epochs", Name: "store-id", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "the StoreID stays for ever, and no two stores have the same",
	Run:  storeIDStays,
}, {
	Topic: "epochs", Name: "empty", Needs: needLocal, Of: ports.Families,
	Must: "Empty says that the store holds no record: marks, tombstones and decisions are none",
	Run:  emptyMeansNoRecord,
}, {
	Topic: "epochs", Name: "nonce", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "Open replaces the host's nonce where it still is the one that the host tells; else it fails with conflict and changes nothing",
	Run:  nonceIsCompared,
}, {
	Topic: "epochs", Name: "nonce-by-host", Needs: needLocal,
	Must: "each host has a nonce of its own",
	Run:  nonceByHost,
}, {
	Topic: "epochs", Name: "nonce-once", Needs: needLocal,
	Must: "of several copies of a host that open the store with the same nonce at once, one is let in",
	Run:  nonceOnce,
}, {
	Topic: "epochs", Name: "positions-by-host", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "each host has a position of its own; a row says which host changed it last, and Position tells them all",
	Run:  positionsByHost,
}, {
	Topic: "epochs", Name: "resume", Needs: needLocal, Of: ports.Families,
	Must: "Open moves the position of a family where Resume says so, on or back, and no other; batches go on from there",
	Run:  resumeMoves,
}, {
	Topic: "epochs", Name: "resume-decides-anew", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "after Resume moved a position back, Seqs that come again are decided anew: they belong to another history",
	Run:  resumeDecidesAnew,
}, {
	Topic: "epochs", Name: "retention", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "the retention of the newest Open is in force, and 0 keeps for ever",
	Run:  retentionOfTheNewestOpen,
}, {
	Topic: "epochs", Name: "put-beside", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a store that was opened takes rows by Put as well, and goes by its host's batches: neither Position nor After of the Put count",
	Run:  putBeside,
}, {
	Topic: "epochs", Name: "thousand", Needs: needLocal, Of: []ports.Family{ports.Queue}, Large: true,
	Must: "the newest 1,000 epochs of a family are known: a position of any of them is one of the store's history",
	Run:  aThousandEpochs,
}}

func unknownHost(c *C) {
	store := power[ports.LocalStore](c)
	var first ports.Standing
	for i := range 3 {
		s, err := store.Stand(c.Ctx, hostC)
		if err != nil {
			c.Fatalf("Stand: %s", faultText(err))
		}
		if i == 0 {
			first = s
		}
		if s.StoreID == "" || s.StoreID != first.StoreID || !s.Empty || s.Nonce != "" || s.Marks[ports.Queue] != (ports.Mark{}) || s.Marks[ports.Manifest] != (ports.Mark{}) {
			c.Errorf("Stand %d of a new store says %+v, want a StoreID, empty, and nothing of the host", i+1, s)
		}
	}
}

func storeIDStays(c *C) {
	l := local(c)
	id := l.stand().StoreID
	same := func(when string) {
		if got := l.stand().StoreID; got != id {
			c.Errorf("%s the StoreID is %q, it was %q", when, got, id)
		}
	}
	l.commit(upsertOf("a", `{}`))
	same("after a commit")
	l.start(nil)
	same("after another start of the host")
	l.reopen(false)
	same("after a close")
	l.second()
	same("after another host opened it")
	other := localAt(c, c.Another())
	if got := other.stand().StoreID; got == id || got == "" {
		c.Errorf("another store has the StoreID %q, the first one has %q", got, id)
	}
}

func emptyMeansNoRecord(c *C) {
	l := local(c)
	want := func(empty bool, when string) {
		if got := l.stand().Empty; got != empty {
			c.Errorf("%s, Empty is %t", when, got)
		}
	}
	want(true, "after Open")
	l.commit(patchOf("nobody", `{"A":1}`))
	want(true, "after a patch of an unknown key")
	l.commit(manifestOf("r", `{}`))
	want(false, "with a manifest")
	l.commit(removalOf("r"))
	want(true, "after its removal")
	l.commit(eventOf("w", "g", `{}`))
	want(false, "with an event")
	l.reopen(false)
	want(false, "after a close")
}

func nonceIsCompared(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`))
	for _, wrong := range []string{"", "guessed", l.nonce + "x"} {
		o := ports.Opening{HostID: l.host, Nonce: wrong, Next: "stolen", Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: "stolen", From: 2}}, Resume: map[ports.Family]uint64{ports.Queue: 0}}
		if err := l.store.Open(c.Ctx, o); ports.CodeOf(err) != ports.Conflict {
			c.Errorf("Open with the nonce %q, where the store holds %q, is answered %s, want conflict", wrong, l.nonce, faultText(err))
		}
		if s := l.stand(); s.Nonce != l.nonce || s.Marks[ports.Queue].Seq != 1 {
			c.Errorf("after a refused Open, Stand says %+v, want the nonce %q and Seq 1", s, l.nonce)
		}
	}
	l.commit(upsertOf("b", `{}`)) // whom the store was open for, it is still
	l.reopen(false)
	l.commit(upsertOf("c", `{}`))
	l.isAt(ports.Queue, 3)
}

func nonceByHost(c *C) {
	a := local(c)
	b := a.second()
	if a.stand().Nonce != a.nonce || b.stand().Nonce != b.nonce {
		c.Errorf("the nonces are %q and %q, want %q and %q", a.stand().Nonce, b.stand().Nonce, a.nonce, b.nonce)
	}
	a.start(nil)
	if b.stand().Nonce != b.nonce {
		c.Errorf("after a start of the first host the second one's nonce is %q, want %q", b.stand().Nonce, b.nonce)
	}
}

func nonceOnce(c *C) {
	l := local(c)
	const copies = 6
	errs := make(chan error, copies)
	for i := range copies {
		go func() {
			errs <- l.store.Open(c.Ctx, ports.Opening{HostID: l.host, Nonce: l.nonce, Next: fmt.Sprint("copy-", i)})
		}()
	}
	in := 0
	for range copies {
		switch err := <-errs; ports.CodeOf(err) {
		case "":
			in++
		case ports.Conflict:
		default:
			c.Errorf("Open: %s, want conflict", faultText(err))
		}
	}
	if in != 1 {
		c.Errorf("%d of %d copies were let in with the same nonce", in, copies)
	}
}

func positionsByHost(c *C) {
	a := local(c)
	a.commit(upsertOf("x", `{"N":1}`), upsertOf("y", `{}`), upsertOf("z", `{}`))
	b := a.second()
	b.seqs[ports.Queue] = 40 // its journal is older than the store
	b.start(map[ports.Family]uint64{ports.Queue: 40})
	b.commit(patchOf("x", `{"N":2}`))
	b.isAt(ports.Queue, 41)
	if at := a.stand().Marks[ports.Queue].Seq; at != 3 {
		c.Errorf("the first host is at %d after a commit of the second, want 3", at)
	}
	p, err := a.store.Position(c.Ctx, ports.Queue)
	if err != nil || p.Seqs[hostA] != 3 || p.Seqs[hostB] != 41 || p.Epoch != b.epochs[ports.Queue].ID {
		c.Errorf("Position says %+v, %s; want 3 and 41, and the newest epoch of the host that opened the store last", p, faultText(err))
	}
	row, err := a.store.Item(c.Ctx, "x")
	if err != nil || row.Change != (ports.Change{Host: hostB, Seq: 41}) || row.First.OrderKey != "01796004734801-0000000000000001-11111111" {
		c.Errorf("the row says %+v and %+v, %s; want the change of the second host and the first write of the first", row.Change, row.First, faultText(err))
	}
	a.start(nil)
	a.commit(patchOf("y", `{"N":3}`))
	a.isAt(ports.Queue, 4)
}

func resumeMoves(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{"N":1}`), upsertOf("b", `{}`), patchOf("a", `{"N":2}`))
	l.commit(manifestOf("r", `{}`))
	manifests := l.epochs[ports.Manifest]
	l.start(map[ports.Family]uint64{ports.Queue: 90})
	l.isAt(ports.Queue, 90)
	if got := l.stand().Marks[ports.Manifest]; got != (ports.Mark{Epoch: manifests.ID, Seq: 1}) {
		c.Errorf("the other family is at %+v, want Seq 1 and the epoch %q of its last batch", got, manifests.ID)
	}
	l.commit(patchOf("a", `{"N":3}`))
	l.isAt(ports.Queue, 91)
	l.start(map[ports.Family]uint64{ports.Queue: 1})
	l.isAt(ports.Queue, 1)
	l.commit(patchOf("b", `{"N":4}`))
	l.isAt(ports.Queue, 2)
	l.reopen(false)
	l.isAt(ports.Queue, 2)
	if rows := everyRow(c, l.store, "a", "b", "r"); len(rows) != 3 {
		c.Errorf("there are %d records, want 3: Resume moves the position alone", len(rows))
	}
}

func resumeDecidesAnew(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`), patchOf("nobody", `{}`), patchOf("nobody", `{}`))
	l.start(map[ports.Family]uint64{ports.Queue: 1})
	b := l.batch(upsertOf("nobody", `{"N":1}`), patchOf("nobody", `{"N":2}`))
	for _, time := range []string{"the first time", "as a late twin"} {
		d, err := l.try(b)
		if err != nil || len(d) != 2 || d[0].Outcome != ports.Stored || d[1].Outcome != ports.Stored {
			c.Errorf("Seqs that come again after Resume are decided %s, %s, %s; want stored", told(d), faultText(err), time)
		}
	}
	row, err := l.store.Item(c.Ctx, "nobody")
	if err != nil || bodyDifference(ports.KindItem, row.Body, []byte(`{"WorkItemHash":"nobody","N":2}`)) != "" {
		c.Errorf("the item is %s, %s", row.Body, faultText(err))
	}
}

func retentionOfTheNewestOpen(c *C) {
	l := local(c)
	old := func(key string) ports.Entry {
		return again(upsertOf(key, `{"Status":"Complete","LastEventAt":"2026-11-01T00:00:00Z"}`))
	}
	for i, step := range []struct {
		retention int // in days
		want      ports.Outcome
	}{{0, ports.Stored}, {7, ports.Expired}, {60, ports.Stored}, {1, ports.Expired}, {0, ports.Stored}} {
		l.retention = time.Duration(step.retention) * day
		l.start(nil)
		if d := l.commit(old(fmt.Sprint("k", i))); d[0].Outcome != step.want {
			c.Errorf("opened with a retention of %d days, an item that ended 29 days ago is decided %s when it is sent again, want %s", step.retention, told(d), step.want)
		}
	}
}

func putBeside(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`))
	elsewhere := ports.Position{StoreID: "another", Epoch: "another", Seqs: map[string]uint64{hostA: 70, hostC: 5}}
	b := ports.Batch{Family: ports.Queue, Rows: []ports.Row{itemRow("a", hostC, 4, `{"N":1}`), itemRow("c", hostC, 5, `{}`)}, Position: &elsewhere, After: &elsewhere}
	if applied, err := l.store.Put(c.Ctx, b); err != nil || applied.Done != 2 {
		c.Fatalf("Put into a store that was opened: %d are done, %s", applied.Done, faultText(err))
	}
	l.isAt(ports.Queue, 2)
	rows, _ := l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("with what was put", rows, "b@2", "a@4", "c@5")
	l.commit(patchOf("a", `{"N":2}`), upsertOf("c", `{"N":3}`))
	l.isAt(ports.Queue, 4)
	rows, _ = l.walk(ports.ChangesQuery{Family: ports.Queue}, nil)
	c.tells("written since", rows, "b@2", "a@3", "c@4")
}

func aThousandEpochs(c *C) {
	l := local(c)
	known := func(e ports.Epoch) {
		p := ports.Position{Epoch: e.ID, Seqs: map[string]uint64{hostA: 1}}
		if _, err := l.store.Changes(c.Ctx, ports.ChangesQuery{Family: ports.Queue, After: p}); err != nil {
			c.Errorf("a position of the epoch %q, one of the newest 1,000, is refused: %s", e.ID, faultText(err))
		}
	}
	l.commit(upsertOf("a", `{}`))
	second := ports.Epoch{ID: "start-1", From: 2}
	for i := range 1000 {
		l.starts++
		l.epochs = map[ports.Family]ports.Epoch{ports.Queue: {ID: fmt.Sprint("start-", i+1), From: 2}}
		l.open(nil)
	}
	known(second)
	known(l.epochs[ports.Queue])
}
