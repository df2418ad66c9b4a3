package main

import (
	"context"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// The whole suite through the process of the plugin, kill -9 included.
func TestThePluginKeepsTheContractThroughItsProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "holdfast-backend-sqlite")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	conformance.Run(t, conformance.Subject{
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			p, err := process.New(process.Spec{Name: c.Name, Kind: "sqlite", Path: path, Config: c, Logger: hclog.NewNullLogger()})
			if err != nil {
				return nil, err
			}
			p.Start()
			if err := p.Await(ctx); err != nil {
				p.Kill()
				return nil, err
			}
			return p, nil
		},
		Kill: func(b ports.Backend) { b.(*process.Process).Kill() },
	})
}
