package bench

import (
	"bytes"
	"testing"

	"holdfast/core"
	"holdfast/ports"
)

func TestTheWorkloadIsWhatTheFiguresSayItIs(t *testing.T) {
	t.Parallel()
	bodies := bulk("check", 0, 6400, 10_000)
	size, lines := 0, 0
	for _, body := range bodies {
		size += len(body)
		lines += bytes.Count(body, []byte("\n"))
	}
	if lines != 6400*perItem {
		t.Errorf("there are %d lines", lines)
	}
	if mean := size / lines; mean < 690 || mean > 730 {
		t.Errorf("a line has %d bytes", mean)
	}
	call, err := core.ParseCall(newItem("check", 7).lines[0])
	if err != nil {
		t.Fatal(err)
	}
	members := 0
	err = ports.ScanObject(call.Settings, 9, func(name, value []byte) error {
		if string(name) != `"WorkItem"` {
			return nil
		}
		return ports.ScanObject(value, 9, func(_, _ []byte) error { members++; return nil })
	})
	if err != nil || members != 36 {
		t.Errorf("an upsert has %d members: %v", members, err)
	}
}

func TestEveryLineBecomesAStatement(t *testing.T) {
	t.Parallel()
	f, err := openFile(t.TempDir() + "/check.db")
	if err != nil {
		t.Fatal(err)
	}
	defer f.close()
	const n = 100
	for _, body := range bulk("check", 0, n, 1000) {
		rows, err := decodeAll(body)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.commit(rows); err != nil {
			t.Fatal(err)
		}
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM UVQueueWorkItem WHERE Status = 'Complete' AND length(Result) > 400`:      n,
		`SELECT count(*) FROM UVQueueWorkItemEvent`:                                                    2 * n,
		`SELECT count(*) FROM UVQueueWorkItemAttempt WHERE Outcome = 'Complete' AND AttemptNumber = 1`: n,
	} {
		var got int
		if err := f.db.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s gives %d: %v", query, got, err)
		}
	}
}
