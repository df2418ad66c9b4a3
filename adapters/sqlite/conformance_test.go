package sqlite_test

import (
	"testing"

	"holdfast/adapters/sqlite"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.InProcess(func() ports.Backend { return sqlite.New() }))
}
