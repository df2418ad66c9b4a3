package e2e_test

import (
	"context"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// persist starts a stock beacon that keeps history, and waits until a host knows it.
func persist(t *testing.T, host *e2e.Host, store *stock.Persistence) *stock.Beacon {
	t.Helper()
	b := store.Beacon(stock.BeaconConfig{ServerURL: host.URL, ReconnectInterval: 100 * time.Millisecond})
	t.Cleanup(b.Kill)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := b.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := b.Await(ctx, func(s stock.BeaconState) bool { return s.ID != "" }); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheRecordedStreamIsBehindABeaconToo(t *testing.T) {
	t.Parallel()
	host := e2e.StartWith(t, e2e.Setup{Config: `
backend "sqlite" "local" {
  local = true
}
backend "beacon" "beacon" {}
`})
	client := host.Client()
	defer client.Close()
	store := stock.NewPersistence()
	first := persist(t, host, store)
	ingest(t, host)
	host.AwaitEqual(t)
	counts := recorded(t).model.Counts()
	if held := store.Holds(); len(held.Items) != counts.Items || len(held.Manifests) != counts.Manifests {
		t.Errorf("the beacon holds %d work items and %d manifests, want %d and %d", len(held.Items), len(held.Manifests), counts.Items, counts.Manifests)
	}

	// Another process of it, which lost everything, gets everything again. Until then the local store answers.
	first.Kill()
	store.Wipe()
	persist(t, host, store)
	e2e.Compare(t, client, recorded(t).model)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // a key in doubt takes a minute
	defer cancel()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		<-look.C
		held, events := store.Holds(), 0
		for _, list := range held.Events {
			events += len(list)
		}
		if len(held.Items) == counts.Items && events == counts.Events && len(held.Manifests) == counts.Manifests {
			break
		}
		if ctx.Err() != nil {
			t.Fatalf("the beacon that came back empty holds %d work items, %d events and %d manifests, want %+v", len(held.Items), events, len(held.Manifests), counts)
		}
	}
	host.AwaitEqual(t)
	client.Answered()
	e2e.Compare(t, client, recorded(t).model)
	if by := client.Answered(); by["beacon"] == 0 {
		t.Errorf("reads are answered by %v, want the beacon too", by)
	}
}
