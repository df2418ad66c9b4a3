package e2e_test

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// ingest runs `holdfast ingest` on the recorded stream, as an operator does.
func ingest(t *testing.T, host *e2e.Host) {
	t.Helper()
	file, err := filepath.Abs(recordedFile)
	if err != nil {
		t.Fatal(err)
	}
	for try := range 3 {
		out, err := host.Command("ingest", "--server", host.URL, file).CombinedOutput()
		t.Logf("ingest: %s", out)
		switch {
		case err == nil:
			return
		case try == 2 || !bytes.Contains(out, []byte("deadline")):
			t.Fatalf("ingest: %v", err)
		}
		// On a busy machine one of the stream's reads ran out of its time; the stream is simply sent again.
	}
}

func TestTheRecordedStreamBecomesItsHubsHistoryOnce(t *testing.T) {
	host := e2e.Start(t)
	client := host.Client()
	defer client.Close()
	want := model.Counts{Items: 740, Events: 1411, Attempts: 630, Manifests: 195}
	for pass := range 2 {
		ingest(t, host)
		client.Settle(t)
		if got := client.Counts(t); got != want {
			t.Errorf("pass %d gives %+v, want %+v", pass+1, got, want)
		}
	}
	e2e.Compare(t, client, recorded(t).model)
}

func TestEveryLineOfTheRecordedStreamIsAnsweredAsTheModelSays(t *testing.T) {
	host := e2e.Start(t)
	client := host.Client()
	defer client.Close()
	recorded(t).checkAnswers(t, client)
}

func TestAnIngestThatTheHostsDeathBrokeOffIsSimplyRunAgain(t *testing.T) {
	whole, broken := e2e.Start(t), e2e.Start(t)
	ingest(t, whole)

	for range 3 {
		file, err := filepath.Abs(recordedFile)
		if err != nil {
			t.Fatal(err)
		}
		cmd := broken.Command("ingest", "--server", broken.URL, file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-time.After(50*time.Millisecond + rand.N(300*time.Millisecond))
		broken.Kill()
		_ = cmd.Wait() // it may have been done already
		broken.Restart(t)
	}
	ingest(t, broken)

	for _, host := range []*e2e.Host{whole, broken} {
		client := host.Client()
		defer client.Close()
		client.Settle(t)
		if got, want := client.Counts(t), recorded(t).model.Counts(); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
	if a, b := export(t, whole), export(t, broken); !bytes.Equal(a, b) {
		t.Errorf("the exports differ: %d and %d bytes, first at line %d", len(a), len(b), firstDifference(a, b))
	}
}

func export(t *testing.T, host *e2e.Host) []byte {
	t.Helper()
	var stderr bytes.Buffer
	cmd := host.Command("export", "--server", host.URL)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || len(out) == 0 {
		t.Fatalf("export gives %d bytes: %v\n%s", len(out), err, &stderr)
	}
	return out
}

func firstDifference(a, b []byte) int {
	line := 1
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			break
		}
		if a[i] == '\n' {
			line++
		}
	}
	return line
}
