package e2e_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"sync"
	"testing"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

func TestMain(m *testing.M) { e2e.Main(m) }

const recordedFile = "../../testdata/recorded/actions.ndjson.gz"

// recording is the recorded stream and what the model says of it. The model is read only.
type recording struct {
	stream  []byte
	answers [2][]model.Answer // to each line, of the first time and of the second
	model   *model.Model      // after the second time, which adds nothing to the first
	err     error
}

var record = sync.OnceValue(func() (r recording) {
	f, err := os.Open(recordedFile)
	if err != nil {
		return recording{err: err}
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return recording{err: err}
	}
	if r.stream, r.err = io.ReadAll(z); r.err != nil {
		return r
	}
	r.model = model.New(model.Options{})
	for pass := range r.answers {
		if r.answers[pass], r.err = r.model.Ingest("actions", bytes.NewReader(r.stream)); r.err != nil {
			return r
		}
		for i := range r.answers[pass] {
			r.answers[pass][i] = plain(r.answers[pass][i])
		}
	}
	return r
})

func recorded(t *testing.T) recording {
	t.Helper()
	r := record()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r
}

// checkAnswers sends the recorded stream twice and holds every line's answer against the model's. A deferred one says less, and so does a
// read that ran out of its time.
func (r recording) checkAnswers(t *testing.T, client *e2e.Client) {
	t.Helper()
	for pass, want := range r.answers {
		got, err := client.Stream(t.Context(), "actions", bytes.NewReader(r.stream))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%d answers, want %d: %v", len(got), len(want), err)
		}
		for i := range want {
			if told := toldBy(got[i]); told != want[i] && !got[i].Deferred && got[i].Code != "deadline" {
				t.Errorf("pass %d, line %d is answered %+v %s, want %+v", pass+1, i+1, told, got[i].Reason, want[i])
			}
		}
	}
	client.Settle(t)
}
