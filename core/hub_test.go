package core

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// The writes of a hub that we joined.

// fromHub makes a call the n-th that a hub sent.
func fromHub(n int, c Call) Call {
	ms := int64(1796004000000 + n)
	c.Source = Source{
		Actor: "hub", Origin: ports.OriginMember, Hub: "hub", Work: fmt.Sprintf("wi-run-node-%d-%d", ms, n),
		Stamp: ports.Stamp{Ms: ms, Count: uint64(n)},
	}
	return c
}

func hubEvent(n int, key, kind string) Call {
	return fromHub(n, call(ports.AppendEvent, `{"Event":{"WorkItemHash":%q,"EventType":%q}}`, key, kind))
}

func TestAHubsWritesAreAnsweredByTheTable(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		early := s.does(fromHub(2, patch("a", "Running")), Early)
		if text := string(early.AppendJSON(nil)); early.HTTPStatus() != 202 || early.Failed() || !early.Success() || !strings.Contains(text, `"Available":true,"Success":true,"Deferred":true`) {
			t.Errorf("an early write is answered %d %s", early.HTTPStatus(), text)
		}
		if s.item("a").Success {
			t.Error("an early write became an item")
		}
		if got := s.host.Write(ports.Queue, early.Seq); got.State != "decided" {
			t.Errorf("the early write is told as %+v", got)
		}
		s.does(fromHub(1, upsert("a", "Pending")), Done)
		s.status("a", "Running")
		s.does(fromHub(4, patch("a", "Complete")), Done)
		late := s.does(fromHub(3, patch("a", "Stalled")), Late)
		if text := string(late.AppendJSON(nil)); late.HTTPStatus() != 200 || late.Failed() || !strings.Contains(text, `"Success":true,"Late":true`) {
			t.Errorf("a late write is answered %d %s", late.HTTPStatus(), text)
		}
		s.status("a", "Complete")
		s.does(patch("a", "Mine"), Done) // everybody else's writes have no order but that of their coming
		s.does(fromHub(9, patch("b", "Running")), Early)
		w := s.host.Status().Families[0].Writes
		if w.Late != 1 || w.Early != 2 || w.EarlyWaiting != 1 || w.EarlyApplied != 1 || w.EarlyDropped != 0 || w.Stored != 3 {
			t.Errorf("the counts are %+v", w)
		}
		s.again()
		s.in(time.Second)
		if w := s.host.Status().Families[0].Writes; w.EarlyWaiting != 1 {
			t.Errorf("after another start the counts are %+v", w)
		}
		s.in(ports.EarlyFor + time.Second)
		s.does(upsert("c", "Pending"), Done)
		if w := s.host.Status().Families[0].Writes; w.EarlyWaiting != 0 || w.EarlyDropped != 1 {
			t.Errorf("a day later the counts are %+v", w)
		}
		s.does(fromHub(8, upsert("b", "Pending")), Done)
		s.status("b", "Pending")
	})
}

func TestAHubsEventIsKnownByTheWorkThatCarriedIt(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(fromHub(1, upsert("a", "Pending")), Done)
		s.does(hubEvent(2, "a", "enqueued"), Done)
		s.does(hubEvent(2, "a", "enqueued"), AlreadyPresent)
		s.does(hubEvent(3, "a", "enqueued"), Done) // it happened twice
		other := hubEvent(2, "a", "enqueued")
		other.Source.Hub = "other"
		s.does(other, Done)
		s.does(hubEvent(5, "b", "enqueued"), Early)
		s.does(hubEvent(5, "b", "enqueued"), Early)
		s.does(fromHub(4, upsert("b", "Pending")), Done)
		s.does(hubEvent(5, "b", "enqueued"), AlreadyPresent)
	})
}

// What stands behind a set-aside item of a hub waits with it, and takes effect in order when it is replayed.
func TestAHubsKeyThatIsSetAsideComesBackWhole(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(fromHub(3, patch("bad", "Running")), Early)
		s.store.suffers(on("bad", neverTakes))
		s.does(fromHub(1, upsert("bad", "Pending")), SetAside)
		s.does(fromHub(4, patch("bad", "Complete")), SetAside)
		s.does(fromHub(2, patch("bad", "Dispatched")), SetAside)
		s.store.suffers(nil)
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Fatal(err)
		}
		s.in(5 * time.Second)
		s.status("bad", "Complete")
		if s.asides() != nil {
			t.Errorf("aside are %v", s.asides())
		}
		if w := s.host.Status().Families[0].Writes; w.EarlyApplied != 1 || w.Late != 1 || w.EarlyWaiting != 0 {
			t.Errorf("the counts are %+v", w)
		}
	})
}

func TestAnEarlyWriteOfAKeyWhoseItemWasDiscardedWaitsOn(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(on("bad", neverTakes))
		s.does(fromHub(1, upsert("bad", "Pending")), SetAside)
		s.does(fromHub(2, patch("bad", "Running")), SetAside)
		s.store.suffers(nil)
		if _, err := s.host.DiscardAside(ports.Queue, "bad"); err != nil {
			t.Fatal(err)
		}
		if _, err := s.host.RetryAside(ports.Queue, "bad"); err != nil {
			t.Fatal(err)
		}
		s.in(5 * time.Second)
		if s.asides() != nil || s.item("bad").Success {
			t.Errorf("aside are %v, the item reads %+v", s.asides(), s.item("bad"))
		}
		s.does(fromHub(3, upsert("bad", "Pending")), Done)
		s.status("bad", "Pending")
		if w := s.host.Status().Families[0].Writes; w.EarlyApplied != 1 {
			t.Errorf("the counts are %+v", w)
		}
	})
}
