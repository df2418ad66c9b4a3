package postgres_test

import (
	"fmt"
	"testing"

	"holdfast/adapters/postgres"
	"holdfast/internal/pgtest"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	s := conformance.InProcess(func() ports.Backend { return postgres.New() })
	s.Options = fmt.Appendf(nil, `{"dsn":%q,"schema":"{case}","pool":2}`, pgtest.Shared(t).Database(t))
	conformance.Run(t, s)
}
