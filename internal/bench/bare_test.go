package bench

import (
	"context"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/uuid"

	"holdfast/adapters/sqlite"
	"holdfast/internal/workload"
	"holdfast/ports"
)

// benchHost is the id of the host that changes rows.
const benchHost = "6f0f4ad4-5b0c-4d8e-9d0e-7a3c0f1e2b6d"

func newGUID() string { return uuid.Must(uuid.NewV7()).String() }

// openFile makes a database with the whole schema, as the store makes it, and opens it for the bare program.
func openFile(dir string) (*workload.Bare, error) {
	store := sqlite.New()
	if err := store.Configure(context.Background(), ports.Configuration{Name: "local", DataDir: dir}); err != nil {
		return nil, err
	}
	if _, err := store.Stand(context.Background(), benchHost); err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	return workload.OpenBare(filepath.Join(dir, "history.db"))
}

// bare writes items from..to to a file, and gives the time and the processor time that this took.
func bare(f *workload.Bare, from, to int) (took, busy time.Duration, err error) {
	writes, err := workload.Writes(workload.Entries(from, to-from, uint64(from*workload.PerItem+1)), benchHost)
	if err != nil {
		return 0, 0, err
	}
	began, used := time.Now(), ownTime()
	err = f.Run(context.Background(), writes)
	return time.Since(began), ownTime() - used, err
}

// ownTime is the processor time that this process has used.
func ownTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
