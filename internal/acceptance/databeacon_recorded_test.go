package acceptance

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/internal/e2e"
	"holdfast/internal/model"
)

// recordedStream is the recorded stream of a hub's actions.
func recordedStream(t *testing.T) []byte {
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
	stream, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

func TestTheRecordedStreamIsTheSameHistoryBehindADatabeaconOfEveryEngine(t *testing.T) {
	t.Parallel()
	stream := recordedStream(t)
	for _, manner := range []stock.Manner{stock.SQLite, stock.Postgres, stock.MySQL} {
		t.Run(string(manner), func(t *testing.T) {
			t.Parallel()
			host := e2e.StartWith(t, keptBehind())
			client := host.Client()
			t.Cleanup(client.Close)
			d := openDatabeacon(t, host, stock.Options{Name: "databeacon", Manner: manner}, 1)
			d.join(t)
			must(t, host, "assign", "databeacon", "1")
			keeping(t, host, patience, "databeacon", "bootstrapped")

			want := model.New(model.Options{})
			if _, err := want.Ingest("actions", bytes.NewReader(stream)); err != nil {
				t.Fatal(err)
			}
			times := 1
			if manner == stock.SQLite {
				times = 2 // the second time adds nothing
			}
			for range times {
				if _, err := client.Stream(t.Context(), "actions", bytes.NewReader(stream)); err != nil {
					t.Fatal(err)
				}
				client.Settle(t)
				host.AwaitEqual(t)
				for table, n := range map[string]int{
					"UVQueueWorkItem": 740, "UVQueueWorkItemEvent": 1411, "UVQueueWorkItemAttempt": 630, "UVManifest": 195,
				} {
					if rows := d.rows(t, 1, table); rows != n {
						t.Errorf("%s has %d rows, want %d", table, rows, n)
					}
				}
			}
			if manner == stock.SQLite { // what it finds the comparison with the model finds as well, in less time
				host.Verify(t, "local", "databeacon")
			}
			client.Answered()
			e2e.Compare(t, client, want)
			if by := client.Answered(); by["databeacon"] < 9*by["local"] || by["databeacon"] == 0 { // a busy machine makes it late now and then
				t.Errorf("reads are answered by %v, want the databeacon", by)
			}
		})
	}
}
