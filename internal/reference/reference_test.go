package reference_test

import (
	"context"
	"testing"

	"holdfast/internal/reference"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

func TestTheReferenceKeepsTheContract(t *testing.T) {
	t.Parallel()
	var disks reference.Disks
	conformance.Run(t, conformance.Subject{
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			s := disks.New()
			return s, s.Configure(ctx, c)
		},
		Kill: func(b ports.Backend) { b.(*reference.Store).Kill() },
	})
}

func TestTheReferenceKeepsTheContractWhereCloseStandsForDeath(t *testing.T) {
	t.Parallel()
	var disks reference.Disks
	conformance.Run(t, conformance.InProcess(func() ports.Backend { return disks.New() }))
}
