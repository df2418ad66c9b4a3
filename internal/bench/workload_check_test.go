package bench

import (
	"bytes"
	"testing"

	"holdfast/internal/workload"
	"holdfast/ports"
)

func TestTheWorkloadIsWhatTheFiguresSayItIs(t *testing.T) {
	t.Parallel()
	const n = 6400
	size, lines := 0, 0
	for _, body := range bodies(0, n, 10_000) {
		size += len(body)
		lines += bytes.Count(body, []byte("\n"))
	}
	if lines != n*workload.PerItem {
		t.Errorf("there are %d lines", lines)
	}
	if mean := size / lines; mean < 750 || mean > 850 {
		t.Errorf("a line has %d bytes", mean)
	}
	upsert, err := entryOf(items(7, 8)[0][0])
	if err != nil {
		t.Fatal(err)
	}
	members := 0
	err = ports.ScanObject(upsert.Record, 9, func(_, _ []byte) error { members++; return nil })
	if err != nil || members != 36 || upsert.Action != ports.UpsertWorkItem {
		t.Errorf("%s has %d members: %v", upsert.Action, members, err)
	}
}

func TestEveryLineBecomesAStatement(t *testing.T) {
	t.Parallel()
	f, err := openFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, it := range items(0, 10) {
		for step, line := range it {
			e, err := entryOf(line)
			if err != nil {
				t.Fatal(err)
			}
			if e.Key == "" && step != 0 && step != 1 && step != 4 {
				t.Errorf("%s has no key", line)
			}
			e.EventGUID = newGUID()
			writes, err := workload.Writes([]ports.Entry{e}, benchHost)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Run(t.Context(), writes); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}
