package core

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// When the local store is away, and when it needs a person.

var noRoom = fate{kind: refuses, err: ports.Errorf(ports.Full, "memory", "the disk is full")}

func TestAStoreThatOpensAndTakesNothingIsAwaySinceTheFirstWriteThatItDidNotTake(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.in(time.Minute)
		s.store.suffers(func(*ports.CommitBatch) fate { f := noRoom; f.after = 30 * time.Millisecond; return f })
		began := time.Now()
		s.does(upsert("b", "Pending"), Deferred)
		for range 1000 {
			s.in(20 * time.Millisecond)
			if b := s.host.Status().Backends[0]; b.State != string(waiting) || b.Since.Sub(began) > 100*time.Millisecond || !strings.Contains(b.Detail, "disk is full") {
				t.Fatalf("after %s it is %+v", time.Since(began), b)
			}
		}
		s.does(call(ports.UpsertManifest, `{"Manifest":{"Hash":"m"}}`), Deferred)
		s.store.suffers(on("b", noRoom)) // one family is taken, the other one is not
		s.in(20 * time.Second)
		if b := s.host.Status().Backends[0]; b.State != string(waiting) || b.Since.Sub(began) > 100*time.Millisecond {
			t.Errorf("while one family is not taken it is %+v", b)
		}
		s.store.suffers(nil)
		s.in(3 * time.Second)
		s.status("b", "Pending")
		if b := s.host.Status().Backends[0]; b.State != string(ready) || time.Since(b.Since) > 3*time.Second || s.host.Ready() != nil {
			t.Errorf("in the end it is %+v", b)
		}
	})
}

func TestAStoreThatOnlyAPersonCanMendSaysSoAndGoesOnByItself(t *testing.T) {
	t.Parallel()
	for name, stand := range map[string]*ports.Error{
		"the password is wrong":        ports.Errorf(ports.Unauthorized, "memory", "wrong password"),
		"the database is not there":    {Code: ports.Unavailable, Field: ports.FieldObstacle, Op: "memory", Message: "no such database"},
		"the store is of a newer host": ports.Errorf(ports.Conflict, "memory", "belongs to a newer holdfast"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(t, func(t *testing.T, s *stage) {
				s.does(upsert("a", "Pending"), Done)
				stands := func(err error) {
					s.store.mu.Lock()
					defer s.store.mu.Unlock()
					s.store.stand = err
				}
				stands(stand)
				s.store.kill(nil)
				s.does(upsert("b", "Pending"), Deferred)
				s.in(5 * time.Second)
				since := s.host.Status().Backends[0].Since
				s.in(time.Minute)
				if b := s.host.Status().Backends[0]; b.State != "error" || !strings.Contains(b.Detail, stand.Message) || b.Remedy == "" || b.Since != since {
					t.Errorf("it is %+v, first since %s", b, since)
				}
				if err := s.host.AcceptLocal(false); ports.CodeOf(err) != ports.Conflict {
					t.Errorf("it can be accepted: %v", err)
				}
				stands(ports.Errorf(ports.Unavailable, "memory", "no server answers"))
				s.in(5 * time.Second)
				if b := s.host.Status().Backends[0]; b.State != string(waiting) || !strings.Contains(b.Detail, "no server answers") || b.Remedy != "" {
					t.Errorf("when it is not there at all it is %+v", b)
				}
				stands(nil)
				s.in(3 * time.Second)
				s.status("b", "Pending")
				if b := s.host.Status().Backends[0]; b.State != string(ready) || b.Remedy != "" {
					t.Errorf("in the end it is %+v", b)
				}
			})
		})
	}
}

func TestAStoreThatMayNotBeWrittenToNeedsAPerson(t *testing.T) {
	t.Parallel()
	play(t, func(t *testing.T, s *stage) {
		s.store.suffers(func(*ports.CommitBatch) fate {
			return fate{kind: refuses, err: ports.Errorf(ports.Unauthorized, "memory", "the role lacks a right")}
		})
		s.does(upsert("a", "Pending"), Deferred)
		s.in(20 * time.Second)
		if b := s.host.Status().Backends[0]; b.State != "error" || b.Remedy == "" || len(s.asides()) != 0 {
			t.Errorf("it is %+v, set aside are %v", b, s.asides())
		}
		s.store.suffers(nil)
		s.in(3 * time.Second)
		s.status("a", "Pending")
	})
}

func TestTheLogSaysWhatAnOlderCopyIsBroughtForwardBy(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	playWith(t, func(s *stage) { s.config.Logger = hclog.New(&hclog.LoggerOptions{Output: &log}) }, func(t *testing.T, s *stage) {
		s.does(upsert("a", "Pending"), Done)
		s.again()
		backup := s.store.look() // of this start of the host
		for i := range 9 {
			s.does(upsert(fmt.Sprint("k", i), "Pending"), Done)
		}
		s.store.kill(nil)
		s.in(time.Second)
		if strings.Contains(log.String(), "older copy") {
			t.Errorf("a mere death is told as an older copy:\n%s", log.String())
		}
		s.store.kill(func(*disk) *disk { return backup })
		s.in(time.Second)
		s.status("k8", "Pending")
		want := "an older copy of the local store is brought forward from the journal: name=local family=Queue from=2 to=10"
		if n := strings.Count(log.String(), want); n != 1 || strings.Count(log.String(), "older copy") != 1 {
			t.Errorf("it is told %d times:\n%s", n, log.String())
		}
	})
}
