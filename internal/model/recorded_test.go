package model_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"testing"

	"holdfast/internal/model"
)

func recorded(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open("../../testdata/recorded/actions.ndjson.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestTheRecordedStreamGivesTheHistoryThatItsHubHadOnce(t *testing.T) {
	t.Parallel()
	stream := recorded(t)
	m := model.New(model.Options{})
	var first map[string]string
	for pass := range 2 {
		answers, err := m.Ingest("actions", bytes.NewReader(stream))
		if err != nil {
			t.Fatal(err)
		}
		if len(answers) != 4552 {
			t.Errorf("%d actions, want 4552", len(answers))
		}
		for i, a := range answers {
			if !a.Success && !a.NotFound || a.Code != "" || a.Refused != "" {
				t.Errorf("line %d: %+v", i+1, a)
			}
		}
		want := model.Counts{Items: 740, Events: 1411, Attempts: 630, Manifests: 195}
		if got := m.Counts(); got != want {
			t.Errorf("pass %d gives %+v, want %+v", pass+1, got, want)
		}
		if pass == 0 {
			first = everything(m)
		}
	}
	// An item goes through its states again and ends in the last one: every member that was given has its last value.
	for key, text := range everything(m) {
		if text != first[key] {
			t.Errorf("%s changed in the second pass\nfrom %s\nto   %s", key, first[key], text)
		}
	}
}

func everything(m *model.Model) map[string]string {
	all := map[string]string{}
	for _, key := range m.Keys() {
		all[key] = fmt.Sprintln(m.Item(key), m.Events(key), m.Attempts(key))
	}
	for _, hash := range m.Manifests() {
		all[hash] = m.Manifest(hash).String()
	}
	return all
}

func same(t *testing.T, what string, want, got []model.Object) {
	t.Helper()
	if len(want) != len(got) {
		t.Errorf("%s: there are %d, want %d", what, len(got), len(want))
		return
	}
	for i := range want {
		for _, d := range model.Diff(want[i], got[i]) {
			t.Errorf("%s: %s", what, d)
		}
	}
}
