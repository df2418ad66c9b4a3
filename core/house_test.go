package core

import (
	"fmt"
	"testing"
	"time"

	"holdfast/ports"
)

// first is the first Seq that the Queue's journal still has.
func (s *stage) first() uint64 { return s.journals[ports.Queue].Bounds().First }

func TestTheJournalKeepsEntriesForTenMinutesAfterTheStoreHasThem(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.in(time.Second)
		s.does(upsert("a", "Pending"), Done)
		s.in(5 * time.Minute)
		s.does(upsert("b", "Pending"), Done)
		s.in(4*time.Minute + 50*time.Second)
		if s.first() != 1 {
			t.Errorf("after less than ten minutes the journal begins at %d", s.first())
		}
		s.in(20 * time.Second)
		if s.first() != 2 {
			t.Errorf("after ten minutes the journal begins at %d", s.first())
		}
		s.in(5 * time.Minute)
		if s.first() != 3 {
			t.Errorf("in the end the journal begins at %d", s.first())
		}
	})
}

func TestAJournalThatIsThreeQuartersFullLetsGoAtOnceOfWhatTheStoreHas(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Limit = 4000 })
		for i := range 14 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
		}
		s.in(6 * time.Second)
		if s.first() != 1 {
			t.Fatalf("with %d of 4000 bytes the journal begins at %d", s.journals[ports.Queue].Bounds().Bytes, s.first())
		}
		s.does(upsert("k14", "Pending"), Done)
		s.does(upsert("k15", "Pending"), Done)
		s.in(6 * time.Second)
		if s.first() != 17 {
			t.Errorf("the journal begins at %d", s.first())
		}
	})
}

func TestTheJournalLetsGoOfNothingThatTheStoreDoesNotHave(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.store.back = 0
		s.store.kill(nil)
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Limit = 100 })
		for i := range 5 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Deferred)
		}
		s.in(time.Hour)
		if s.first() != 2 {
			t.Errorf("the journal begins at %d", s.first())
		}
		s.store.start()
		s.in(time.Minute)
		s.status("k4", "Pending")
	})
}

// What the store had ten minutes ago it need not have now.
func TestTheJournalLetsGoOfNothingThatAnOlderStoreMustStillGet(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		backup := s.store.look()
		for i := range 5 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
		}
		s.in(5 * time.Minute)
		s.store.kill(func(*disk) *disk { return backup })
		s.store.suffers(refusing(ports.Unavailable))
		s.does(upsert("b", "Pending"), Deferred)
		s.in(20 * time.Minute) // the store is older, and takes nothing
		s.store.suffers(nil)
		s.in(time.Minute)
		if lost := s.host.Status().Families[0].Lost; lost != nil {
			t.Errorf("lost are %v", lost)
		}
		s.status("k4", "Pending")
		s.status("b", "Pending")
	})
}

// A store that is away may come back older. However full the journal is, only a store that is there says what it has.
func TestAFullJournalKeepsWhatAStoreThatIsAwayMayNeedAgain(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		backup := s.store.look()
		s.does(upsert("b", "Pending"), Done)
		s.store.back = 0
		s.store.kill(func(*disk) *disk { return backup })
		s.in(time.Second)
		s.journals[ports.Queue].change(func(j *memoryJournal) { j.bounds.Full = true })
		s.does(upsert("c", "Pending"), Unavailable)
		s.in(time.Minute)
		if s.first() != 1 {
			t.Errorf("the journal begins at %d", s.first())
		}
		s.store.start()
		s.in(time.Minute)
		s.status("b", "Pending")
		if lost := s.host.Status().Families[0].Lost; lost != nil {
			t.Errorf("lost are %v", lost)
		}
	})
}

func TestPositionsAreRememberedWhileTheHostRunsAndWhenItEnds(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.in(6 * time.Second)
		if got := s.state.known.Marks[ports.Queue].Seq; got != 1 {
			t.Errorf("remembered is %d", got)
		}
		s.does(upsert("b", "Pending"), Done)
		s.again()
		if known := s.state.known; known.Marks[ports.Queue].Seq != 2 || known.StoreID != "store-1" || known.Name != "local" {
			t.Errorf("remembered is %+v", known)
		}
	})
}

func TestRetentionPrunesInStepsAndAHungPruneHoldsUpNothingElse(t *testing.T) {
	t.Parallel()
	playWith(t, func(s *stage) {
		s.config.Retention = time.Hour
		s.store.prunes = []ports.Pruned{{Items: 3, More: true}, {Items: 2}}
	}, func(t *testing.T, s *stage) {
		s.in(2 * time.Minute)
		if len(s.store.prunes) != 0 {
			t.Errorf("%d steps are left", len(s.store.prunes))
		}
		s.does(upsert("a", "Pending"), Done)
		s.in(55 * time.Minute)
		s.store.mu.Lock()
		s.store.pruneHangs = true
		s.store.mu.Unlock()
		s.in(30 * time.Minute)
		s.does(upsert("b", "Pending"), Done)
		s.in(15 * time.Minute)
		if s.first() != 3 {
			t.Errorf("the journal begins at %d: nobody keeps house", s.first())
		}
	})
}
