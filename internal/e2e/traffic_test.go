package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"holdfast/internal/e2e"
	"holdfast/internal/model"
	"holdfast/internal/traffic"
	"holdfast/ports"
)

func TestWhateverComesBecomesTheHistoryThatTheModelHas(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, store ports.LocalStore) {
		client := within(t, store)
		var rounds atomic.Int64
		rapid.Check(t, func(t *rapid.T) {
			round := fmt.Sprint(rounds.Add(1)) // all rounds share the host, none a key
			keys := []string{round + "-a", round + "-b"}
			length := rapid.IntRange(1, 40).Draw(t, "length")
			var stream []byte
			for _, a := range rapid.SliceOfN(traffic.Acts(keys, round), length, length).Draw(t, "acts") {
				stream = append(append(stream, e2e.Line(a.Action, json.RawMessage(a.Settings))...), '\n')
			}
			m := model.New(model.Options{})
			for range 2 {
				want, err := m.Ingest(round, bytes.NewReader(stream))
				if err != nil {
					t.Fatal(err)
				}
				got, err := client.Stream(t.Context(), round, bytes.NewReader(stream))
				if err != nil || len(got) != len(want) {
					t.Fatalf("%d answers, want %d: %v", len(got), len(want), err)
				}
				for i := range want {
					if told := toldBy(got[i]); told != plain(want[i]) {
						t.Errorf("line %d is answered %+v %s, want %+v", i+1, told, got[i].Reason, plain(want[i]))
					}
				}
				for _, key := range keys {
					e2e.CompareKey(t, client, m, key)
					e2e.CompareManifest(t, client, m, key)
				}
			}
		})
	})
}
