package e2e_test

import (
	"context"
	"testing"

	"holdfast/adapters/process"
	"holdfast/internal/e2e"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// The whole suite once more through the wire, the process and its death.
func TestTheSQLitePluginKeepsTheContract(t *testing.T) {
	t.Parallel()
	path := e2e.Plugin(t)
	conformance.Run(t, conformance.Subject{
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			p, err := process.New(process.Spec{Name: c.Name, Kind: "sqlite", Path: path, Config: c})
			if err != nil {
				return nil, err
			}
			p.Start()
			if err := p.Await(ctx); err != nil {
				_ = p.Close()
				return nil, err
			}
			return p, nil
		},
		Kill: func(b ports.Backend) { b.(*process.Process).Kill() },
	})
}
