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
	out, err := host.Command("ingest", "--server", host.URL, file).CombinedOutput()
	t.Logf("ingest: %s", out)
	if err != nil {
		t.Fatalf("ingest: %v", err)
	}
}

func settle(t *testing.T, host *e2e.Host) {
	t.Helper()
	client := host.Client()
	defer client.Close()
	client.Settle(t)
}

// modelOf is the history that the recorded stream makes, sent so many times.
func modelOf(t *testing.T, stream []byte, times int) *model.Model {
	t.Helper()
	m := model.New(model.Options{})
	for range times {
		if _, err := m.Ingest("actions.ndjson.gz", bytes.NewReader(stream)); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestTheRecordedStreamBecomesItsHubsHistoryOnce(t *testing.T) {
	stream := recorded(t)
	host := e2e.Start(t)
	client := host.Client()
	defer client.Close()
	want := model.Counts{Items: 740, Events: 1411, Attempts: 630, Manifests: 195}
	for pass := range 2 {
		ingest(t, host)
		settle(t, host)
		m := modelOf(t, stream, pass+1)
		if got := e2e.Counted(t, client, m.Keys()); got != want {
			t.Errorf("pass %d gives %+v, want %+v", pass+1, got, want)
		}
		e2e.Compare(t, client, m)
	}
}

func TestEveryLineOfTheRecordedStreamIsAnsweredAsTheModelSays(t *testing.T) {
	stream := recorded(t)
	host := e2e.Start(t)
	client := host.Client()
	defer client.Close()
	m := model.New(model.Options{})
	for pass := range 2 {
		want, err := m.Ingest("s", bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Stream(t.Context(), "s", bytes.NewReader(stream))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d answers, want %d: %v", len(got), len(want), err)
		}
		for i := range want {
			if told := toldBy(got[i]); told != plain(want[i]) && !got[i].Deferred {
				t.Errorf("pass %d, line %d is answered %+v %s, want %+v", pass+1, i+1, told, got[i].Reason, plain(want[i]))
			}
		}
	}
}

func TestAnIngestThatTheHostsDeathBrokeOffIsSimplyRunAgain(t *testing.T) {
	stream := recorded(t)
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
		settle(t, host)
	}
	client := broken.Client()
	defer client.Close()
	m := modelOf(t, stream, 1)
	for _, hash := range m.Keys() {
		e2e.CompareKey(t, client, m, hash)
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
