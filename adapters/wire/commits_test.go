package wire_test

import (
	"bytes"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"holdfast/ports"
)

func TestBatchesReachTheStoreInOrderAheadOfTheirAnswers(t *testing.T) {
	arrived := make(chan uint64, 8)
	release := make(chan struct{})
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		arrived <- b.Through
		l := atOnce(b)
		l.decide = release
		return l, nil
	}})
	var pendings []ports.Pending
	for from := 1; from <= 4; from++ {
		p, err := client.Commit(t.Context(), batch(from, 1))
		if err != nil {
			t.Fatal(err)
		}
		pendings = append(pendings, p)
	}
	for want := uint64(1); want <= 4; want++ {
		if got := <-arrived; got != want {
			t.Fatalf("batch %d came where %d was due", got, want)
		}
	}
	close(release)
	for i, p := range pendings {
		decisions, err := p.Wait(t.Context())
		if err != nil || len(decisions) != 1 || decisions[0] != (ports.Decision{Seq: uint64(i + 1), Outcome: ports.Stored}) {
			t.Errorf("batch %d: %v, %v", i+1, decisions, err)
		}
	}
}

func TestDecisionsComeBackAsTheyWereMade(t *testing.T) {
	want := []ports.Decision{
		{Seq: 1, Outcome: ports.Stored}, {Seq: 2, Outcome: ports.AlreadyPresent}, {Seq: 3, Outcome: ports.Missing},
		{Seq: 4, Outcome: ports.Stored}, {Seq: 5, Outcome: ports.Expired}, {Seq: 6, Outcome: ports.AlreadyAbsent},
		{Seq: 7, Outcome: ports.Refused, Err: ports.InField(ports.Conflict, "Payload", "differs from what is stored")},
		{Seq: 8, Outcome: ports.Late}, {Seq: 9, Outcome: ports.Early, Dropped: 2, Waiting: 5}, {Seq: 10, Outcome: ports.Stored, Applied: 3},
	}
	var got ports.CommitBatch
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		got = b
		l := atOnce(b)
		l.decisions = want
		return l, nil
	}})
	sent := batch(1, 10)
	sent.Entries[1] = ports.Entry{
		Seq: 2, Action: ports.AppendEvent, Class: ports.Reflush, Key: "schlüssel", Record: []byte("{ \"a\" : 1.0 }"),
		ReceivedMs: 7, Host: "host", Actor: "actor", Origin: ports.OriginHub, EventGUID: "guid", GUIDGiven: true,
	}
	sent.Entries[2] = ports.Entry{Seq: 3, Action: ports.UpdateAttemptOutcome, Class: ports.Live, Key: "k", Number: 3, Record: []byte("{}"), Again: 1}
	sent.Entries[2].Stamp = ports.Stamp{Ms: 1796004734800, Count: 1<<64 - 1}
	sent.Entries[3] = ports.Entry{Seq: 4, Action: ports.RemoveManifest, Class: ports.Live, Key: "k"}
	pending, err := client.Commit(t.Context(), sent)
	if err != nil {
		t.Fatal(err)
	}
	decisions, err := pending.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, decisions); diff != "" {
		t.Errorf("decisions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("batch (-sent +got):\n%s", diff)
	}
	again, err := pending.Wait(t.Context())
	if err != nil || !slices.Equal(again, decisions) {
		t.Errorf("a second Wait: %v, %v", again, err)
	}
}

func TestABatchThatFailsLeavesTheOthersAlone(t *testing.T) {
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		l := atOnce(b)
		switch b.Through {
		case 1:
			return nil, ports.Errorf(ports.Conflict, "test: commit", "after is 0, the store's position 7")
		case 2:
			panic("in Commit")
		case 3:
			l.decisions, l.err = nil, ports.Errorf(ports.Full, "", "no room")
		case 4:
			l.decisions = nil // one too few
		case 5:
			l.decisions[0].Seq = 99
		case 6:
			return nil, nil // Wait on it panics
		}
		return l, nil
	}})
	codes := map[int]ports.Code{1: ports.Conflict, 2: ports.Internal, 3: ports.Full, 4: ports.Internal, 5: ports.Internal, 6: ports.Internal, 7: ""}
	pendings := map[int]ports.Pending{}
	for through := 1; through <= 7; through++ {
		p, err := client.Commit(t.Context(), batch(through, 1))
		if err != nil {
			t.Fatal(err)
		}
		pendings[through] = p
	}
	for through, want := range codes {
		if _, err := pendings[through].Wait(t.Context()); ports.CodeOf(err) != want {
			t.Errorf("batch %d: %v, want code %q", through, err, want)
		}
	}
}

func TestABatchThatCannotBeSentIsRefusedAtOnce(t *testing.T) {
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) { return atOnce(b), nil }})
	first, err := client.Commit(t.Context(), batch(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*ports.Entry){
		"key":    func(e *ports.Entry) { e.Key = "\xff" },
		"actor":  func(e *ports.Entry) { e.Actor = "\xff" },
		"action": func(e *ports.Entry) { e.Action = ports.GetEvents },
	} {
		bad := batch(2, 1)
		spoil(&bad.Entries[0])
		if _, err := client.Commit(t.Context(), bad); ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	large := batch(2, 1)
	large.Entries[0].Record = bytes.Repeat([]byte{' '}, ports.MaxMessageBytes)
	if _, err := client.Commit(t.Context(), large); ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("too large: %v", err)
	}
	largest := batch(2, 1)
	largest.Entries[0].Record = bytes.Repeat([]byte{' '}, ports.MaxRecordBytes)
	second, err := client.Commit(t.Context(), largest)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range []ports.Pending{first, second} {
		if _, err := p.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func TestWhenTheStreamBreaksEveryBatchIsInDoubt(t *testing.T) {
	arrived := make(chan struct{}, 8)
	client, cut := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		arrived <- struct{}{}
		return &later{decide: make(chan struct{})}, nil
	}})
	var pendings []ports.Pending
	for from := 1; from <= 3; from++ {
		p, err := client.Commit(t.Context(), batch(from, 1))
		if err != nil {
			t.Fatal(err)
		}
		pendings = append(pendings, p)
	}
	for range 3 {
		<-arrived
	}
	cut()
	for i, p := range pendings {
		if _, err := p.Wait(t.Context()); ports.CodeOf(err) != ports.BackendGone {
			t.Errorf("batch %d: %v", i+1, err)
		}
	}
	// The next batch tries a new stream, and there is no plugin any more.
	p, err := client.Commit(t.Context(), batch(4, 1))
	if err == nil {
		_, err = p.Wait(t.Context())
	}
	if ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("afterwards: %v", err)
	}
}

func TestAfterAClosedStreamTheNextBatchOpensANewOne(t *testing.T) {
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		return atOnce(b), nil
	}})
	for from := 1; from <= 2; from++ {
		for _, f := range ports.Families {
			b := batch(from, 2)
			b.Family = f
			p, err := client.Commit(t.Context(), b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Wait(t.Context()); err != nil {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Commit(t.Context(), batch(5, 1)); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("after Close: %v", err)
	}
}

func TestABatchThatHangsHoldsUpNothingThatComesAfterTheNextOpening(t *testing.T) {
	client, _ := connect(t, &script{
		open: func(ports.Opening) error { return nil },
		commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
			l := atOnce(b)
			if b.Through == 1 {
				l.decide = make(chan struct{}) // never
			}
			return l, nil
		},
	})
	hung, err := client.Commit(t.Context(), batch(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Open(t.Context(), ports.Opening{}); err != nil {
		t.Fatal(err)
	}
	next, err := client.Commit(t.Context(), batch(2, 1))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		pending ports.Pending
		code    ports.Code
	}{"the hung batch": {hung, ports.BackendGone}, "the next batch": {next, ""}} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if _, err := c.pending.Wait(ctx); ports.CodeOf(err) != c.code {
			t.Errorf("%s: %v, want the code %q", name, err, c.code)
		}
		cancel()
	}
}

func TestWaitKeepsItsDeadlineWhileTheStoreSleeps(t *testing.T) {
	release := make(chan struct{})
	client, _ := connect(t, &script{commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
		l := atOnce(b)
		l.decide = release
		return l, nil
	}})
	p, err := client.Commit(t.Context(), batch(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := p.Wait(ctx); ports.CodeOf(err) != ports.Deadline {
		t.Errorf("got %v", err)
	}
	close(release)
	if decisions, err := p.Wait(t.Context()); err != nil || len(decisions) != 1 {
		t.Errorf("a second Wait: %v, %v", decisions, err)
	}
}

func TestSubmittingKeepsItsDeadlineWhenTheStoreTakesNothing(t *testing.T) {
	stuck := make(chan struct{})
	client, _ := connect(t, &script{commit: func(context.Context, ports.CommitBatch) (ports.Pending, error) {
		<-stuck
		return nil, ports.Errorf(ports.Internal, "", "stuck")
	}})
	defer close(stuck)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	var err error
	for from := 1; err == nil; from++ {
		b := batch(from, 1)
		b.Entries[0].Record = bytes.Repeat([]byte{' '}, 4<<20)
		if from > 100 {
			t.Fatal("a hundred batches were taken")
		}
		_, err = client.Commit(ctx, b)
	}
	if ports.CodeOf(err) != ports.Deadline {
		t.Errorf("got %v", err)
	}
}

func TestDrainFinishesWhatWasBegunAndTakesNoMore(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	store := &script{
		describe: func() (ports.Description, error) { return ports.Description{Kind: "test"}, nil },
		probe:    func(context.Context) error { return nil },
		commit: func(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
			close(arrived)
			l := atOnce(b)
			l.decide = release
			return l, nil
		},
	}
	client, _ := connect(t, store)
	p, err := client.Commit(t.Context(), batch(1, 1))
	if err != nil {
		t.Fatal(err)
	}
	<-arrived
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := client.Drain(short); ports.CodeOf(err) != ports.Deadline || store.drained {
		t.Fatalf("drained under a batch: %v", err)
	}
	close(release)
	if err := client.Drain(t.Context()); err != nil || !store.drained {
		t.Fatalf("drain: %v", err)
	}
	if decisions, err := p.Wait(t.Context()); err != nil || len(decisions) != 1 {
		t.Errorf("the batch that was begun: %v, %v", decisions, err)
	}
	if err := client.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a later call: %v", err)
	}
	p, err = client.Commit(t.Context(), batch(2, 1))
	if err == nil {
		_, err = p.Wait(t.Context())
	}
	if ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a later batch: %v", err)
	}
	if _, err := client.Describe(t.Context()); err != nil {
		t.Errorf("describe: %v", err)
	}
}

func BenchmarkCommitOf512ThroughANoOpStore(b *testing.B) {
	client, _ := connect(b, &script{commit: func(_ context.Context, batch ports.CommitBatch) (ports.Pending, error) {
		return atOnce(batch), nil
	}})
	sent := batch(1, 512)
	for i := range sent.Entries {
		sent.Entries[i].Record = bytes.Repeat([]byte{'x'}, 600)
	}
	b.SetBytes(512 * 600)
	b.ReportAllocs()
	for b.Loop() {
		p, err := client.Commit(b.Context(), sent)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
