package e2e_test

import (
	"testing"

	"holdfast/internal/e2e"
)

func TestTheRecordedStreamIsTheSameHistoryInTheLocalStoreAndItsMirror(t *testing.T) {
	t.Parallel()
	host := e2e.StartWith(t, e2e.Mirrored("mirror"))
	client := host.Client()
	defer client.Close()
	for range 2 { // the second time adds nothing
		ingest(t, host)
		host.AwaitEqual(t)
		host.Verify(t, "local", "mirror")
	}
	client.Answered()
	e2e.Compare(t, client, recorded(t).model)
	if by := client.Answered(); by["mirror"] == 0 || len(by) != 1 {
		t.Errorf("reads are answered by %v, want the mirror alone", by)
	}

	host.Hold(t, "mirror")
	if items := client.Items(t); len(items) != recorded(t).model.Counts().Items {
		t.Errorf("without the mirror %d work items are there", len(items))
	}
	if by := client.Answered(); by["local"] == 0 || len(by) != 1 {
		t.Errorf("without the mirror reads are answered by %v, want the local store", by)
	}
	host.Free(t, "mirror")
	host.AwaitEqual(t)
	host.Verify(t, "mirror", "local")
}
