package acceptance

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/pgtest"
)

func TestNothingIsLostWhenTheDiskOfThePostgresIsFull(t *testing.T) {
	t.Parallel()
	var disk *pgtest.Tiny
	s := startStormy(t, pgtest.Options{}, func(s *stormy) { disk = s.server.TinyDisk(t, 64) })
	s.weather(func(s *stormy) {
		s.must(disk.Fill())
		state := func() (string, error) {
			b, err := s.host.Backend(s.Context(), "local")
			return b.State, err
		}
		e2e.Await(s, "the disk is noticed", func() error {
			is, err := state()
			if err == nil && is != "waiting-for-beacon" {
				err = fmt.Errorf("the local store is %s", is)
			}
			return err
		})
		s.every(50*time.Millisecond, func() error { // it is not back before it has taken a write
			is, err := state()
			if err == nil && is == "bootstrapped" {
				err = errors.New("the local store is back while its disk is full")
			}
			return err
		})
		s.must(disk.Free())
	})
	for _, line := range []string{"the local store is away", "the local store is back"} {
		if n := strings.Count(s.host.Log(), line); n != 1 {
			t.Errorf("the log has %d times %q", n, line)
		}
	}
}
