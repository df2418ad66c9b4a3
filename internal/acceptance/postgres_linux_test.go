package acceptance

import (
	"testing"

	"holdfast/internal/pgtest"
)

func TestNothingIsLostWhenTheDiskOfThePostgresIsFull(t *testing.T) {
	t.Parallel()
	var disk *pgtest.Tiny
	s := startStormy(t, pgtest.Options{}, func(s *stormy) { disk = s.server.TinyDisk(t, 64) })
	s.weather(func(s *stormy) {
		s.must(disk.Fill())
		s.last()
		s.must(disk.Free())
	})
}
