package sqlite

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/workload"
	"holdfast/ports"
)

// The test starts itself again as a process that commits without end, and kills it at any moment.
const childPath = "HOLDFAST_SQLITE_CHILD"

// child commits batches of the workload from where the store is, and prints each mark that was reported as committed.
func child() bool {
	path := os.Getenv(childPath)
	if path == "" {
		return false
	}
	if err := commitForEver(path); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return true
}

func commitForEver(path string) error {
	ctx := context.Background()
	s := New()
	given, err := json.Marshal(map[string]string{"path": path})
	if err != nil {
		return err
	}
	if err := s.Configure(ctx, ports.Configuration{Options: given}); err != nil {
		return err
	}
	standing, err := s.Stand(ctx, host)
	if err != nil {
		return err
	}
	err = s.Open(ctx, ports.Opening{HostID: host, Nonce: standing.Nonce, Next: standing.Nonce + "n", Epochs: map[ports.Family]ports.Epoch{ports.Queue: {ID: epoch, From: 1}}})
	if err != nil {
		return err
	}
	seq := standing.Marks[ports.Queue].Seq
	type sent struct {
		p       ports.Pending
		through uint64
	}
	var flight []sent
	for {
		b := ports.CommitBatch{Family: ports.Queue, Epoch: epoch, After: seq, Through: seq + uint64(1+rand.IntN(60))}
		b.Entries = stretch(b.After, b.Through)
		p, err := s.Commit(ctx, b)
		if err != nil {
			return err
		}
		seq = b.Through
		flight = append(flight, sent{p, seq})
		if len(flight) < 4 {
			continue
		}
		decisions, err := flight[0].p.Wait(ctx)
		if err != nil {
			return err
		}
		for _, d := range decisions {
			if d.Outcome != ports.Stored {
				return fmt.Errorf("entry %d is %s", d.Seq, d.Outcome)
			}
		}
		fmt.Println(flight[0].through)
		flight = flight[1:]
	}
}

// stretch gives the workload's entries with Seqs behind after up to through.
func stretch(after, through uint64) []ports.Entry {
	round := uint64(workload.Interleaved * workload.PerItem)
	var entries []ports.Entry
	for n := after / round; n*round < through; n++ {
		for _, e := range workload.Entries(int(n*workload.Interleaved), workload.Interleaved, n*round+1) {
			if e.Seq > after && e.Seq <= through {
				entries = append(entries, e)
			}
		}
	}
	return entries
}

func TestAKilledProcessLosesNothingThatItReported(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history.db")
	reported := uint64(0)
	for round := range max(12/slowdown, 4) {
		reported = max(reported, killOne(t, path, round))
		s := New()
		configure(t, s, path)
		standing, err := s.Stand(t.Context(), host)
		if err != nil {
			t.Fatal(err)
		}
		mark := standing.Marks[ports.Queue].Seq
		if mark < reported {
			t.Fatalf("round %d: the store is at %d, %d was reported", round, mark, reported)
		}
		admit(t, s, standing.Nonce)
		var check string
		if err := s.file.readers.QueryRowContext(t.Context(), `PRAGMA integrity_check`).Scan(&check); err != nil || check != "ok" {
			t.Fatalf("round %d: %s, %v", round, check, err)
		}
		holds(t, s, mark)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if reported < 100/slowdown {
		t.Errorf("only %d entries were reported", reported)
	}
}

// killOne runs the child, kills it after some reports, and gives the last one.
func killOne(t *testing.T, path string, round int) (last uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childPath+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }) // a child that reports nothing
	defer kill.Stop()
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		if _, err := fmt.Sscan(lines.Text(), &last); err != nil {
			t.Fatalf("child said %q", lines.Text())
		}
		if n == round*7 {
			if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != -1 {
		t.Fatalf("child ended with %v", err)
	}
	return last
}

// holds checks that the store has exactly the effects of the first entries up to a mark.
func holds(t *testing.T, s *Store, mark uint64) {
	t.Helper()
	items, changed, events := map[string]bool{}, uint64(0), 0
	for _, e := range stretch(0, mark) {
		switch e.Action {
		case ports.UpsertWorkItem:
			items[e.Key] = true
		case ports.AppendEvent:
			events++
		}
		changed = max(changed, e.Seq)
	}
	survey, err := s.Survey(t.Context())
	if err != nil || survey.Counts[ports.KindItem] != int64(len(items)) || survey.Counts[ports.KindEvent] != int64(events) {
		t.Fatalf("at %d the store has %v, want %d items and %d events, %v", mark, survey.Counts, len(items), events, err)
	}
	var newest uint64
	for _, l := range layouts {
		var n uint64
		if err := s.file.readers.QueryRowContext(t.Context(), `SELECT coalesce(max("ChangeSeq"), 0) FROM "`+l.Table.Name+`"`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		newest = max(newest, n)
	}
	if newest != changed {
		t.Fatalf("the newest change is %d, want %d", newest, changed)
	}
}
