package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/internal/pgtest"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// The whole suite through the process of the plugin, kill -9 included.
func TestThePluginKeepsTheContractThroughItsProcess(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Shared(t).Database(t)
	path := filepath.Join(t.TempDir(), "holdfast-backend-postgres")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	conformance.Run(t, conformance.Subject{ // all cases at once take their time on a busy machine
		Patience: 40 * time.Second, Options: fmt.Appendf(nil, `{"dsn":%q,"schema":"{case}","pool":2,"timeout":"30s"}`, dsn),
		Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
			p, err := process.New(process.Spec{Name: c.Name, Kind: "postgres", Path: path, Config: c, Logger: hclog.NewNullLogger()})
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
