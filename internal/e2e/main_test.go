package e2e_test

import (
	"compress/gzip"
	"io"
	"os"
	"testing"

	"holdfast/internal/e2e"
)

func TestMain(m *testing.M) { e2e.Main(m) }

const recordedFile = "../../testdata/recorded/actions.ndjson.gz"

func recorded(t *testing.T) []byte {
	t.Helper()
	f, err := os.Open(recordedFile)
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
