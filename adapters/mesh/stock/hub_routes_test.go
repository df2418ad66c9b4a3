package stock

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

func TestTheHubIsReadThroughWhoKeepsItsHistory(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	store := NewPersistence()
	join(t, store.Beacon(BeaconConfig{ServerURL: url}))
	hub.Imagine(Registration{Name: "worker", Capabilities: []string{"C"}}, true)
	hash := hub.Enqueue(Spec{Capability: "C"})
	_ = hub.Complete(hash, Result{})
	hub.UpsertManifest(encode(map[string]any{"Hash": "run-1", "Status": "Complete"}))
	awaitHub(t, hub, "the answers", idle)
	for path, wanted := range map[string]string{
		"/Beacon/Queue?include=history": hash, "/Beacon/Work/" + hash + "/Events": "completed", "/Manifest": "run-1",
		"/Manifest/run-1": "Complete", "/Beacon": "persist", "/Beacon/Affinity": "queue-persistence",
		"/Beacon/Capabilities": "QP_GetEvents", "/Ultravisor/Persistence/Status": "unassigned", "/status": "promiscuous",
		"/Manifest/none": "not found", "/Nowhere": "ResourceNotFound", "/Beacon/Register": "Beacon not found",
		"/1.0/Authenticate": "MethodNotAllowed",
	} {
		if got := get(t, url+path); !strings.Contains(got, wanted) {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url) //nolint:gosec // a test's own server
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func TestARefusedSocketIsToldWhyAndClosedWith4403(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, told string
		config     HubConfig
		frame      map[string]any
	}{
		{"a wrong join secret", "denied", HubConfig{Secured: true, Auth: &Auth{JoinSecret: "right"}}, map[string]any{"Name": "w", "JoinSecret": "wrong"}},
		{"nobody to ask", "No auth beacon connected", HubConfig{Secured: true}, map[string]any{"Name": "w", "JoinSecret": "x"}},
		{"no bootstrap secret", "UltravisorBootstrapAuthSecret", HubConfig{Secured: true}, map[string]any{"Name": "a", "Capabilities": []string{"Authentication"}}},
		{"a wrong one", "mismatch", HubConfig{Secured: true, BootstrapSecret: "x"}, map[string]any{"Name": "a", "Capabilities": []string{"Authentication"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, url := open(t, c.config)
			ctx := within(t)
			conn, res, err := websocket.Dial(ctx, url, nil)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body != nil {
				defer res.Body.Close()
			}
			c.frame["Action"] = "BeaconRegister"
			if err := conn.Write(ctx, websocket.MessageText, encode(c.frame)); err != nil {
				t.Fatal(err)
			}
			_, said, err := conn.Read(ctx)
			if err != nil || text(inside(said)["EventType"]) != "BeaconRejected" || !strings.Contains(text(inside(said)["Reason"]), c.told) {
				t.Errorf("told %s, %v", said, err)
			}
			if _, _, err = conn.Read(ctx); websocket.CloseStatus(err) != 4403 {
				t.Errorf("closed with %v", err)
			}
		})
	}
}

func TestTheDispatchRouteAnswersAsTheStockHubDoes(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{})
	post := func(body string) (int, members) {
		res, err := http.Post(url+"/Beacon/Work/Dispatch", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		got, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, inside(got)
	}
	check := func(body string, status int, told string) {
		t.Helper()
		got, answer := post(body)
		if got != status || !strings.Contains(string(document(answer)), told) {
			t.Errorf("%s: %d %s, wanted %d %s", body, got, document(answer), status, told)
		}
	}
	check(`{"Capability":"C"}`, http.StatusServiceUnavailable, `"Success":false`)
	b := join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "w", Actions: []Action{echo("C", "A")}, MaxConcurrent: 4}))
	check(`{"Action":"A"}`, http.StatusBadRequest, `"Success":false`)
	check(`{"Capability":"C","Action":"A","Settings":{"Text":"x"}}`, http.StatusOK, `"StdOut":"x"`)
	check(`{`, http.StatusBadRequest, `InvalidContent`)
	b.Misbehave(Always(Fault{Error: "boom"}))
	check(`{"Capability":"C","Action":"A"}`, http.StatusInternalServerError, `"Error":"boom"`)
	b.Misbehave(Always(Fault{Mute: true}))
	check(`{"Capability":"C","Action":"A","TimeoutMs":50}`, http.StatusInternalServerError, `timed out after 50ms`)
	check(`{"Capability":"D","Action":"A","TimeoutMs":50}`, http.StatusInternalServerError, `timed out`)
	if s := hub.State(); s.Waiting+s.Running != 0 {
		t.Errorf("works are left: %+v", s)
	}
}

func TestAnAuthenticationBeaconDecidesAndItsSecretsAreWrittenDown(t *testing.T) {
	t.Parallel()
	hub, url := open(t, HubConfig{Secured: true, BootstrapSecret: "boot"})
	decides := []Action{echo("Authentication", "AUTH_Login"), echo("Authentication", "AUTH_ValidateBeaconJoin")} // against everybody
	join(t, NewBeacon(BeaconConfig{ServerURL: url, Name: "auth", JoinSecret: "boot", Actions: decides, MaxConcurrent: 10}))
	bad := NewBeacon(BeaconConfig{ServerURL: url, Name: "w", JoinSecret: "hush", UserName: "u", Password: "word"})
	t.Cleanup(bad.Kill)
	done := make(chan error, 1)
	ctx := within(t)
	go func() { done <- bad.Start(ctx) }()
	awaitBeacon(t, bad, "the refusal", func(s BeaconState) bool { return s.Sockets == 1 && !s.Connected })
	var all []byte
	for _, f := range hub.Fired() {
		all = append(all, f.Settings...)
	}
	for _, secret := range []string{"hush", "word"} {
		if !strings.Contains(string(all), secret) {
			t.Errorf("%q was not written down", secret)
		}
	}
}
