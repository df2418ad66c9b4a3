package postgres_test

import (
	"fmt"
	"testing"

	"holdfast/adapters/postgres"
	"holdfast/internal/pgtest"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// It runs before the others and not beside them: the cases at the limits move records of 64 MiB, in bounded time.
func TestConformance(t *testing.T) {
	s := conformance.InProcess(func() ports.Backend { return postgres.New() })
	s.Options = fmt.Appendf(nil, `{"dsn":%q,"schema":"{case}","pool":2}`, pgtest.Shared(t).Database(t))
	conformance.Run(t, s)
}
