package stock

import (
	"context"
	"fmt"
	"net/http/httptest"
	"time"
)

// A store of history behind a beacon that takes 25 ms for each write, joined to a hub that writes into it.
func ExamplePersistence() {
	hub := NewHub(HubConfig{})
	server := httptest.NewServer(hub)
	store := NewPersistence()
	beacon := store.Beacon(BeaconConfig{ServerURL: server.URL, MaxConcurrent: 4})
	beacon.Misbehave(Slow(25 * time.Millisecond))
	if err := beacon.Start(context.Background()); err != nil {
		fmt.Println(err)
		return
	}
	answer := hub.Call("QP_UpsertWorkItem", map[string]any{"WorkItem": map[string]any{"WorkItemHash": "wi-1", "Status": "Complete"}})
	fmt.Println(string(answer))
	fmt.Println(string(store.Holds().Items["wi-1"]))
	beacon.Kill()
	hub.Close()
	server.Close()
	// Output:
	// {"Available":true,"Success":true}
	// {"Status":"Complete","WorkItemHash":"wi-1"}
}
