package line

import (
	"context"
	"testing"
	"testing/synctest"

	"holdfast/ports"
)

func batch(entries int, size int) ports.CommitBatch {
	b := ports.CommitBatch{Entries: make([]ports.Entry, entries)}
	for i := range b.Entries {
		b.Entries[i].Record = make([]byte, size)
	}
	return b
}

func TestBatchesThatFitIntoOneTransactionAreTakenTogetherInTheirOrder(t *testing.T) {
	t.Parallel()
	q := New()
	var submitted []*Pending
	for _, entries := range []int{512, 512, 1} {
		p, err := q.Submit(t.Context(), batch(entries, 1))
		if err != nil {
			t.Fatal(err)
		}
		submitted = append(submitted, p)
	}
	urgent := &Job{Run: func() error { return nil }}
	if err := q.Add(t.Context(), urgent, true); err != nil {
		t.Fatal(err)
	}
	if group := q.Take(); len(group) != 1 || group[0] != urgent {
		t.Fatalf("the urgent job is not the first: %v", group)
	}
	group := q.Take()
	if len(group) != 2 || group[0].Batch != submitted[0] || group[1].Batch != submitted[1] {
		t.Fatalf("of 512, 512 and 1 entries %d batches go together", len(group))
	}
	if group = q.Take(); len(group) != 1 || group[0].Batch != submitted[2] {
		t.Fatal("the last batch is not the last")
	}
	group[0].Batch.Decisions = []ports.Decision{{Seq: 7}}
	q.Finish(group[0], nil)
	if d, err := submitted[2].Wait(t.Context()); err != nil || len(d) != 1 || d[0].Seq != 7 {
		t.Fatalf("its caller got %v, %v", d, err)
	}
}

func TestWhoComesToAFullLineWaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := New()
		large := &Job{Cost: 2 * queueBytes, Run: func() error { return nil }}
		if err := q.Add(t.Context(), large, false); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := q.Add(ctx, &Job{Cost: 1}, false); err == nil {
			t.Fatal("a full line took one more")
		}
		next := make(chan error, 1)
		go func() { next <- q.Add(t.Context(), &Job{Cost: 1, Run: large.Run}, false) }()
		synctest.Wait()
		select {
		case err := <-next:
			t.Fatalf("the next one did not wait: %v", err)
		default:
		}
		q.Finish(q.Take()[0], nil)
		if err := <-next; err != nil {
			t.Fatal(err)
		}
	})
}

func TestAClosedLineDoesWhatIsInItUnlessItIsDropped(t *testing.T) {
	t.Parallel()
	gone := ports.Errorf(ports.Unavailable, "store", "is gone")
	for _, drop := range []bool{false, true} {
		q := New()
		p, err := q.Submit(t.Context(), batch(1, 1))
		if err != nil {
			t.Fatal(err)
		}
		q.Close(gone, drop)
		if _, err := q.Submit(t.Context(), batch(1, 1)); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a closed line took one more: %v", err)
		}
		if drop {
			if _, err := p.Wait(t.Context()); ports.CodeOf(err) != ports.Unavailable {
				t.Errorf("what was dropped ended with %v", err)
			}
		} else {
			q.Finish(q.Take()[0], nil)
			if _, err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if q.Take() != nil {
			t.Error("there is more in a line that is closed and empty")
		}
	}
}
