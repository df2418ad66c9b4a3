package model_test

import (
	"bytes"
	"compress/gzip"
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

func TestTheRecordedStreamGivesTheHistoryThatItsHubHad(t *testing.T) {
	t.Parallel()
	stream := recorded(t)
	m := model.New(model.Options{})
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
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheRecordedStreamASecondTimeChangesNothing(t *testing.T) {
	t.Parallel()
	stream := recorded(t)
	once, twice := model.New(model.Options{}), model.New(model.Options{})
	for _, m := range []*model.Model{once, twice, twice} {
		if _, err := m.Ingest("actions", bytes.NewReader(stream)); err != nil {
			t.Fatal(err)
		}
	}
	if once.Counts() != twice.Counts() {
		t.Errorf("once %+v, twice %+v", once.Counts(), twice.Counts())
	}
	for _, key := range once.Keys() {
		// An item goes through its states again and ends in the last one: every member that was given has its last value.
		same(t, "item "+key, []model.Object{once.Item(key)}, []model.Object{twice.Item(key)})
		same(t, "events of "+key, once.Events(key), twice.Events(key))
		same(t, "attempts of "+key, once.Attempts(key), twice.Attempts(key))
	}
	for _, hash := range once.Manifests() {
		same(t, "manifest "+hash, []model.Object{once.Manifest(hash)}, []model.Object{twice.Manifest(hash)})
	}
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
