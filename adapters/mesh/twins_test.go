package mesh

import (
	"strings"
	"testing"
	"time"
)

// A program that is replaced by its next version is not worth a word; two that stay beside each other are, once.
func TestTwoProgramsOfOneNameAreToldOnceWhenBothStay(t *testing.T) {
	t.Parallel()
	var log logged
	now := newHand(noon)
	s := serve(t, Config{Clock: now.read, Logger: log.logger()})
	told := func() int { return strings.Count(log.String(), "two programs use one beacon name") }
	beat := func(p *peer) {
		t.Helper()
		before := s.hub.registry.byName["worker"].seenAt
		p.say(map[string]any{"Action": "BeaconHeartbeat"})
		eventually(t, "a heartbeat", func() (heard bool) {
			s.hub.look(func() { heard = s.hub.registry.byName["worker"].seenAt.After(before) })
			return heard
		})
	}
	older, newer := s.beacon("worker", 1, "Shell"), s.beacon("worker", 1, "Shell")
	now.move(time.Second)
	beat(older)
	if told() != 0 {
		t.Errorf("a second later it is told already:\n%s", log.String())
	}
	for range 5 {
		now.move(time.Minute)
		beat(older)
		now.move(time.Second)
		beat(newer)
	}
	if told() != 1 {
		t.Errorf("it is told %d times:\n%s", told(), log.String())
	}
	_ = older.conn.CloseNow()
	eventually(t, "its end", func() bool { return s.sockets() == 1 })
	s.beacon("worker", 1, "Shell") // the next one
	now.move(time.Minute)
	beat(newer)
	if told() != 2 {
		t.Errorf("another one is told %d times:\n%s", told()-1, log.String())
	}
}
