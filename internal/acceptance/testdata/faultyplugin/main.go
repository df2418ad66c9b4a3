// Command faultyplugin is the sqlite plugin with a fault: it cannot commit a record that is marked, until a file called
// "mended" lies in the data directory. {"Mark": "refuse"} is refused for good, "kill" ends the process, "hang" is never
// answered while the store probes well.
package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"

	"holdfast/adapters/sqlite"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

func main() { sdk.Serve(&faulty{Store: sqlite.New()}) }

type faulty struct {
	*sqlite.Store
	dir string
}

func (f *faulty) Configure(ctx context.Context, c ports.Configuration) error {
	f.dir = c.DataDir
	return f.Store.Configure(ctx, c)
}

func (f *faulty) Commit(ctx context.Context, b ports.CommitBatch) (ports.Pending, error) {
	if _, err := os.Stat(filepath.Join(f.dir, "mended")); err == nil {
		return f.Store.Commit(ctx, b)
	}
	for i := range b.Entries {
		switch record := b.Entries[i].Record; {
		case bytes.Contains(record, []byte(`"Mark":"refuse"`)):
			return refused{}, nil
		case bytes.Contains(record, []byte(`"Mark":"kill"`)):
			os.Exit(1)
		case bytes.Contains(record, []byte(`"Mark":"hang"`)):
			return hung{}, nil
		}
	}
	return f.Store.Commit(ctx, b)
}

type refused struct{}

func (refused) Wait(context.Context) ([]ports.Decision, error) {
	return nil, ports.Errorf(ports.Invalid, "faulty: commit", "a marked record is never taken")
}

type hung struct{}

func (hung) Wait(ctx context.Context) ([]ports.Decision, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
