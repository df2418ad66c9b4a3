package conformance

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// Batches: their order, their answers, and where they leave the store.

var commitCases = []Case{{
	Topic: "commit", Name: "answers", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a batch has one decision for each entry, in the order of the entries; an entry sees those before it; waiting again gives the same answer",
	Run:  commitAnswers,
}, {
	Topic: "commit", Name: "one-refused", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "an entry that is refused, missing or present already stops no other entry of its batch",
	Run:  oneRefused,
}, {
	Topic: "commit", Name: "ahead", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "batches that are sent ahead of their answers take effect in the order of the calls, and each has an answer of its own",
	Run:  commitAhead,
}, {
	Topic: "commit", Name: "families", Needs: needLocal, Of: ports.Families,
	Must: "the families have positions of their own: the same Seqs may come in both, and batches of both may be under way at once",
	Run:  commitFamilies,
}, {
	Topic: "commit", Name: "position", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "Through of the last batch is the store's position, in Stand and in Position, also of a batch without entries or with gaps between its Seqs, and after a close",
	Run:  commitPosition,
}, {
	Topic: "commit", Name: "gap", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a batch whose After is not the store's position is refused with conflict and changes nothing; the right one is taken after it",
	Run:  commitGap,
}, {
	Topic: "commit", Name: "behind-a-gap", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "batches that were sent ahead behind one that was refused miss their predecessor and are refused with conflict; none of them changes anything",
	Run:  commitBehindAGap,
}, {
	Topic: "commit", Name: "older-epoch", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a batch of an epoch that is not the newest which the store was opened with is refused with conflict and changes nothing: another host, or a copy of this one, has opened it since",
	Run:  commitOlderEpoch,
}, {
	Topic: "commit", Name: "twin", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a batch whose Through the store has passed changes nothing and gets the decisions of the first time, also where it is cut otherwise, and after a close",
	Run:  commitTwin,
}, {
	Topic: "commit", Name: "twin-of-a-removal", Needs: needLocal, Of: []ports.Family{ports.Manifest},
	Must: "a late twin is not decided again: a manifest that was removed since does not come back, and a removal takes away nothing that came since",
	Run:  commitTwinOfARemoval,
}, {
	Topic: "commit", Name: "full", Needs: needLocal, Of: []ports.Family{ports.Queue},
	Must: "a batch of 512 entries is taken, and one of 4 MiB",
	Run:  commitFull,
}}

func commitAnswers(c *C) {
	l := local(c)
	b := l.batch(
		patchOf("a", `{"Status":"x"}`), upsertOf("a", `{"WorkItemHash":"a"}`), patchOf("a", `{"Status":"y"}`),
		eventOf("a", "g", `{"WorkItemHash":"a"}`), eventOf("a", "g", `{"WorkItemHash":"a"}`), outcomeOf("a", 1, `{"Outcome":"z"}`), outcomeOf("a", 1, `{"Error":"e"}`),
	)
	p := l.send(b)
	want := []ports.Outcome{ports.Missing, ports.Stored, ports.Stored, ports.Stored, ports.AlreadyPresent, ports.Stored, ports.Stored}
	for _, time := range []string{"first", "second"} {
		decisions, err := p.Wait(c.Ctx)
		if err != nil {
			c.Fatalf("the batch fails, the %s time that its answer is waited for: %s", time, faultText(err))
		}
		l.answersFit(&b, decisions)
		if got := outcomes(decisions); !slices.Equal(got, want) {
			c.Errorf("it is decided %s, the %s time that its answer is waited for; want %v", told(decisions), time, want)
		}
	}
	row, err := l.store.Item(c.Ctx, "a")
	if err != nil {
		c.Fatalf("a record that was answered as stored cannot be read: %s", faultText(err))
	}
	if difference := bodyDifference(ports.KindItem, row.Body, []byte(`{"WorkItemHash":"a","Status":"y"}`)); difference != "" {
		c.Errorf("the item: %s", difference)
	}
}

func outcomes(decisions []ports.Decision) []ports.Outcome {
	all := make([]ports.Outcome, len(decisions))
	for i, d := range decisions {
		all[i] = d.Outcome
	}
	return all
}

func oneRefused(c *C) {
	l := local(c)
	l.commit(guided(eventOf("a", "g", `{"WorkItemHash":"a","EventGUID":"g"}`)))
	d := l.commit(
		upsertOf("a", `{"WorkItemHash":"a"}`), guided(eventOf("a", "g", `{"WorkItemHash":"a","EventGUID":"g","A":1}`)), patchOf("nobody", `{"A":1}`),
		upsertOf("b", `{"WorkItemHash":"b"}`),
	)
	if got, want := outcomes(d), []ports.Outcome{ports.Stored, ports.Refused, ports.Missing, ports.Stored}; !slices.Equal(got, want) {
		c.Errorf("it is decided %s, want %v", told(d), want)
	}
	for _, key := range []string{"a", "b"} {
		if _, err := l.store.Item(c.Ctx, key); err != nil {
			c.Errorf("item %q, beside a refused entry: %s", key, faultText(err))
		}
	}
}

func commitAhead(c *C) {
	l := local(c)
	const batches, window = 40, 4
	var pending []ports.Pending
	var sent []ports.CommitBatch
	for i := range batches {
		b := l.batch(upsertOf("a", fmt.Sprintf(`{"N":%d}`, i)), eventOf("a", fmt.Sprintf("g%02d", i), `{"WorkItemHash":"a"}`))
		sent, pending = append(sent, b), append(pending, l.send(b))
		if i+1 < window {
			continue
		}
		at := i + 1 - window
		decisions, err := pending[at].Wait(c.Ctx)
		if err != nil {
			c.Fatalf("batch %d of those sent ahead: %s", at+1, faultText(err))
		}
		l.answersFit(&sent[at], decisions)
	}
	for at := batches - window + 1; at < batches; at++ {
		if _, err := pending[at].Wait(c.Ctx); err != nil {
			c.Fatalf("batch %d of those sent ahead: %s", at+1, faultText(err))
		}
	}
	rows := everyRow(c, l.store, "a")
	if len(rows) != 1+batches {
		c.Fatalf("there are %d records, want an item and %d events", len(rows), batches)
	}
	if difference := bodyDifference(ports.KindItem, rows[0].Body, fmt.Appendf(nil, `{"WorkItemHash":"a","N":%d}`, batches-1)); difference != "" || rows[0].Change.Seq != 2*batches-1 {
		c.Errorf("the item was changed last by write %d, want %d, and %s", rows[0].Change.Seq, 2*batches-1, difference)
	}
	for i, r := range rows[1:] {
		if want := fmt.Sprintf("g%02d", i); r.GUID != want {
			c.Errorf("event %d is %q, want %q", i+1, r.GUID, want)
		}
	}
}

func commitFamilies(c *C) {
	l := local(c)
	var pending []ports.Pending
	for i := range 3 {
		for _, e := range []ports.Entry{upsertOf(fmt.Sprint("w", i), `{}`), manifestOf(fmt.Sprint("r", i), `{}`)} {
			pending = append(pending, l.send(l.batch(e)))
		}
	}
	pending = append(pending, l.send(l.batch(upsertOf("w3", `{}`))))
	for _, p := range pending {
		if _, err := p.Wait(c.Ctx); err != nil {
			c.Fatalf("a batch of one family beside those of the other: %s", faultText(err))
		}
	}
	l.isAt(ports.Queue, 4)
	l.isAt(ports.Manifest, 3)
	if rows := everyRow(c, l.store, "w0", "w1", "w2", "w3", "r0", "r1", "r2"); len(rows) != 7 {
		c.Errorf("there are %d records, want 7", len(rows))
	}
}

// isAt sees to it that the store says it is at a Seq of the host.
func (l *localStore) isAt(f ports.Family, seq uint64) {
	want := ports.Mark{Epoch: l.epochs[f].ID, Seq: seq}
	if got := l.stand().Marks[f]; got != want {
		l.c.Errorf("Stand says that the store is at %+v of %s, want %+v", got, f, want)
	}
	p, err := l.store.Position(l.c.Ctx, f)
	if err != nil {
		l.c.Fatalf("Position: %s", faultText(err))
	}
	if p.Epoch != want.Epoch || p.Seqs[l.host] != want.Seq || p.StoreID != l.stand().StoreID {
		l.c.Errorf("Position of %s says %+v, want Seq %d of host %s, the epoch %q and the StoreID that Stand tells", f, p, want.Seq, l.host, want.Epoch)
	}
}

func commitPosition(c *C) {
	l := local(c)
	l.commit(upsertOf("a", `{}`), upsertOf("b", `{}`))
	l.isAt(ports.Queue, 2)
	empty := ports.CommitBatch{Family: ports.Queue, Epoch: l.epochs[ports.Queue].ID, After: 2, Through: 9}
	if d, err := l.try(empty); err != nil || len(d) != 0 {
		c.Fatalf("a batch without entries has %d decisions and the error %s", len(d), faultText(err))
	}
	l.isAt(ports.Queue, 9)
	l.seqs[ports.Queue] = 9
	b := l.batch(upsertOf("c", `{}`), upsertOf("d", `{}`))
	b.Entries[1].Seq, b.Through = 15, 20
	l.seqs[ports.Queue] = 20
	d, err := l.try(b)
	if err != nil {
		c.Fatalf("a batch with gaps between its Seqs: %s", faultText(err))
	}
	l.answersFit(&b, d)
	l.isAt(ports.Queue, 20)
	l.reopen(false)
	l.isAt(ports.Queue, 20)
	l.commit(upsertOf("e", `{}`))
	l.isAt(ports.Queue, 21)
}

func commitFull(c *C) {
	l := local(c)
	var many, large []ports.Entry
	for i := range ports.MaxBatchEntries {
		many = append(many, eventOf("a", fmt.Sprintf("g%03d", i), `{"WorkItemHash":"a"}`))
	}
	body := fmt.Sprintf(`{"Settings":%q}`, strings.Repeat("x", ports.MaxBatchBytes/8-200))
	for i := range 8 {
		large = append(large, upsertOf(fmt.Sprint("w", i), body))
	}
	l.commit(many...)
	l.commit(large...)
	if rows := everyRow(c, l.store, "a"); len(rows) != len(many) {
		c.Errorf("there are %d events, want %d", len(rows), len(many))
	}
	for i := range large {
		if _, err := l.store.Item(c.Ctx, large[i].Key); err != nil {
			c.Errorf("item %q: %s", large[i].Key, faultText(err))
		}
	}
}
