package meadowproxy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"holdfast/ports"
)

// Older copies of a database that take its place while a batch is on its way, and nobody is told: at each of its requests, for copies
// that are at the same position or further back. Whatever was written must be there in the end.

func TestAnOlderCopyThatComesAtAnyRequestLacksNothingInTheEnd(t *testing.T) {
	t.Parallel()
	const batches = 4 // before the one in which it comes
	for name, send := range sendings {
		for back := -1; back < batches; back++ { // -1: made before the last request of the batch before
			t.Run(fmt.Sprintf("%s, %d back", name, back), func(t *testing.T) {
				t.Parallel()
				c := newChronicle(t, send)
				var copies []string // the newest one first
				for request, last := 1, 1; request <= last+1; request++ {
					for first := true; first || len(copies) < batches; first = false {
						c.writes()
						c.catchesUp()
						copies = append([]string{c.copied()}, copies...)
					}
					if back < 0 {
						c.writes()
						end := c.before(func(n int) {
							if n == last {
								copies[0] = c.copied()
							}
						})
						if err := c.batch(); err != nil {
							t.Fatal(err)
						}
						end()
					}
					older := copies[max(back, 0)]
					c.writes()
					end := c.before(func(n int) {
						if n == request {
							c.replace(older)
						}
					})
					_ = c.batch() // it fails, or not
					last = max(last, end())
					if request > last {
						c.replace(older)
					}
					c.catchesUp()
					c.has(fmt.Sprintf("replaced at request %d", request))
					copies = copies[max(back, 0):] // the others are not older ones of what came now
				}
			})
		}
	}
}

func TestOlderCopiesThatComeAgainAndAgainLackNothingInTheEnd(t *testing.T) {
	t.Parallel()
	for name, send := range sendings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seed := uint64(time.Now().UnixNano())
			r := rand.New(rand.NewPCG(seed, 0))
			c := newChronicle(t, send)
			c.writes()
			c.catchesUp()
			copies := []string{c.copied()}
			for range 40 {
				end := c.before(func(int) {
					if r.IntN(12) == 0 {
						n := r.IntN(len(copies))
						c.replace(copies[n])
						copies = copies[:n+1] // as above
					}
				})
				for range 3 {
					c.writes()
					_ = c.Probe(c.within(), ports.Queue)
					_ = c.session()
				}
				end()
				c.catchesUp()
				c.has(fmt.Sprintf("seed %d", seed))
				if copies = append(copies, c.copied()); len(copies) > 5 {
					copies = copies[1:]
				}
			}
		})
	}
}

func TestAnOlderCopyAtTheSamePositionIsFoundOutWhileNothingIsPut(t *testing.T) {
	t.Parallel()
	for _, looked := range []bool{false, true} { // the host has asked for the position beside, and takes it for the one that it knows
		t.Run(fmt.Sprint("looked ", looked), func(t *testing.T) {
			t.Parallel()
			c := newChronicle(t, nil)
			c.stored = c.position()
			c.mustPut("one", &c.stored, 1)
			c.stored = c.position()
			older := c.copied()
			if err := c.puts([]ports.Row{item("two", 2)}, nil); err != nil {
				t.Fatal(err)
			}
			c.replace(older)
			if looked && c.looks() != nil {
				t.Error("it is at another position")
			}
			if err := c.reads("one"); looked && ports.CodeOf(err) != ports.Unavailable {
				t.Errorf("a read before the host knows: %v", err)
			}
			if err := c.Probe(c.within(), ports.Queue); ports.CodeOf(err) != ports.Unavailable || ports.AsError(err).Field != ports.FieldBootstrap {
				t.Errorf("the first probe: %v", err)
			}
			if err := c.Probe(c.within(), ports.Queue); err != nil {
				t.Errorf("the second probe: %v", err)
			}
			c.position()
			if err := c.reads("one"); err != nil {
				t.Errorf("a read after the host asked: %v", err)
			}
			c.mustPut("two", &c.stored, 2)
		})
	}
}

func TestAPutThatWasBegunBeforeAnOlderCopyCameDoesNotMoveItsPosition(t *testing.T) {
	t.Parallel()
	c := newChronicle(t, nil)
	c.stored = c.position()
	c.mustPut("one", &c.stored, 1)
	c.stored = c.position()
	older := c.copied()
	hold, held := make(chan struct{}), make(chan struct{}, 1)
	c.db.Fault(func(_, _ string, settings json.RawMessage) (string, bool) {
		if bytes.Contains(settings, []byte("EventGUID")) && !bytes.Contains(settings, []byte(http.MethodGet)) {
			held <- struct{}{}
			<-hold
		}
		return "", false
	})
	late, after := make(chan error, 1), c.stored
	go func() {
		event := ports.Row{Kind: ports.KindEvent, Key: "two", GUID: guidOf("two", 1), Body: fmt.Appendf(nil, `{"WorkItemHash":"two","EventGUID":%q}`, guidOf("two", 1))}
		to := ports.Position{StoreID: after.StoreID, Seqs: map[string]uint64{"host": 3}}
		_, err := c.Put(c.within(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("two", 2), event}, After: &after, Position: &to})
		late <- err
	}()
	<-held // its item is in
	c.replace(older)
	if is := c.position(); !same(is, after) {
		t.Errorf("the store is at %v", is)
	}
	if err := c.puts([]ports.Row{item("three", 4)}, nil); ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
		t.Errorf("a Put to the older copy: %v", err)
	}
	c.position() // the host begins again
	close(hold)
	if err := <-late; ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
		t.Errorf("the Put that was begun before: %v", err)
	}
	if is := c.position(); !same(is, after) {
		t.Errorf("the position has moved to %v", is)
	}
	c.mustPut("two", &after, 3)
}
