package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	client "holdfast/adapters/mesh/stock"
	"holdfast/internal/e2e"
)

// Databeacons: stock ones, connected to a host over a socket, as operators have them.

// keptBehind is a host whose history is kept behind whatever databeacon is assigned, which answers reads before the local store.
func keptBehind() e2e.Setup {
	return e2e.Setup{Config: "route = [\"databeacon\", \"local\"]\nbackend \"sqlite\" \"local\" {\n  local = true\n}\nbackend \"meadowproxy\" \"databeacon\" {}\n"}
}

// databeacon is one, and its connection to a host.
type databeacon struct {
	*stock.Databeacon
	tags map[string]any // that it registers with
	at   string         // the hub that it connects to; "" is the host's

	host   *e2e.Host
	client *client.Beacon
}

// openDatabeacon makes a databeacon with some connections, each to a database of its own, that is not connected to the host yet.
func openDatabeacon(t testing.TB, h *e2e.Host, o stock.Options, connections int) *databeacon {
	t.Helper()
	o.Dir = t.TempDir()
	db, err := stock.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	d := &databeacon{Databeacon: db, host: h}
	t.Cleanup(func() {
		d.die()
		_ = db.Close()
	})
	for i := range connections {
		if _, err := db.AddConnection(fmt.Sprintf("store %d", i+1), "", true); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// join connects it to the host, as a new process of the beacon.
func (d *databeacon) join(t testing.TB) {
	t.Helper()
	d.client = client.NewBeacon(client.BeaconConfig{
		ServerURL: cmp.Or(d.at, d.host.URL), Name: d.Name(), MaxConcurrent: 3, Tags: d.tags, ReconnectInterval: 200 * time.Millisecond,
		Actions: stock.Behind(d.Databeacon, func(a stock.Action, do func(context.Context, json.RawMessage) (any, error)) client.Action {
			return client.Action{Capability: a.Capability, Name: a.Name, Do: func(ctx context.Context, w *client.Work) (any, error) {
				return do(ctx, w.Settings)
			}}
		}),
	})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := d.client.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := d.client.Await(ctx, func(s client.BeaconState) bool { return s.ID != "" }); err != nil {
		t.Fatal(err)
	}
}

// leave says goodbye to the host, which forgets its BeaconID.
func (d *databeacon) leave(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	_ = d.client.Stop(ctx) // it says goodbye twice, and nobody knows it the second time
}

// die kills the beacon's process.
func (d *databeacon) die() {
	if d.client != nil {
		d.client.Kill()
	}
}

// id is its BeaconID now.
func (d *databeacon) id() string { return d.client.State().ID }

// rows counts the rows of a connection's table that are not deleted.
func (d *databeacon) rows(t testing.TB, connection int64, table string) (n int) {
	t.Helper()
	if err := d.Database(connection).QueryRowContext(t.Context(), "SELECT count(*) FROM "+table+" WHERE Deleted = 0").Scan(&n); err != nil {
		t.Fatalf("%s of connection %d: %v", table, connection, err)
	}
	return n
}

// patience bounds every wait: far more than a healthy host needs on a busy machine.
const patience = 60 * time.Second

// keeping waits until both families are so, as told by the route of a stock hub.
func keeping(t testing.TB, h *e2e.Host, within time.Duration, beacon, state string) {
	t.Helper()
	began := time.Now()
	last := ""
	for time.Since(began) < within {
		families := persistence(t, h)
		last = fmt.Sprintf("%+v", families)
		good := true
		for _, f := range families {
			good = good && f.State == state && (f.AssignedBeaconID == nil) == (beacon == "") && (beacon == "" || *f.AssignedBeaconID == beacon)
		}
		if good {
			return
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Errorf("after %s it is %s, want %s of %q", within, last, state, beacon)
}

// family is what the route of a stock hub tells of one.
type family struct {
	State              string
	AssignedBeaconID   *string
	IDBeaconConnection int64
	LastError          *string
	BootstrappedAt     *string
	AssignedAt         *string
}

// persistence asks for both families.
func persistence(t testing.TB, h *e2e.Host) (both [2]family) {
	t.Helper()
	response, err := http.Get(h.URL + "/Ultravisor/Persistence/Status")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var told struct{ Queue, Manifest family }
	if err := json.NewDecoder(response.Body).Decode(&told); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", response.Status, err)
	}
	return [2]family{told.Queue, told.Manifest}
}

// assigned orders an assignment as the tools of a stock hub do.
func assigned(t testing.TB, h *e2e.Host, order string) (status int, answer string) {
	t.Helper()
	response, err := http.Post(h.URL+"/Ultravisor/Persistence/Assign", "application/json", strings.NewReader(order))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
