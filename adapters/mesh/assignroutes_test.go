package mesh

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"holdfast/core"
	"holdfast/ports"
)

// keeping is a core that notes what is assigned.
type keeping struct {
	Core
	mu    sync.Mutex
	told  []string
	shown []core.AssignmentStatus
}

func (*keeping) HostID() string { return "host" }

func (*keeping) Items(context.Context, ports.ItemQuery) core.Answer {
	return core.Answer{Value: []byte("[]")}
}

func (k *keeping) Assignments() []core.AssignmentStatus { return k.shown }

func (k *keeping) Assign(families []ports.Family, beacon string, connection int64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if connection <= 0 {
		return ports.InField(ports.Invalid, "IDBeaconConnection", "is %d", connection)
	}
	k.told = append(k.told, fmt.Sprint(families, beacon, " ", connection))
	return nil
}

func (k *keeping) Unassign(families []ports.Family) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, fmt.Sprint(families, "none"))
	return nil
}

func TestADatabeaconIsAssignedAsAtAStockHub(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"BeaconID":"databeacon","IDBeaconConnection":3}`:                    "[]databeacon 3",
		`{"BeaconID":"bcn-databeacon-1700000000000","IDBeaconConnection":3}`:  "[]bcn-databeacon-1700000000000 3",
		`{"BeaconID":"databeacon","IDBeaconConnection":"4"}`:                  "[]databeacon 4",
		`{"BeaconID":"databeacon","IDBeaconConnection":" 4 "}`:                "[]databeacon 4",
		`{"IDBeaconConnection":5.0,"BeaconID":"d\u00e4ta","Other":{"a":[1]}}`: "[]däta 5",
		`{"BeaconID":null,"IDBeaconConnection":0}`:                            "[]none",
		`{"BeaconID":""}`:           "[]none",
		`{"IDBeaconConnection":3}`:  "[]none",
		`{}`:                        "[]none",
		``:                          "[]none",
		`{"BeaconID":"databeacon"}`: "400 IDBeaconConnection: is 0",
		`{"BeaconID":"databeacon","IDBeaconConnection":"three"}`: "400 IDBeaconConnection: is 0",
		`{"BeaconID":"databeacon","IDBeaconConnection":3.5}`:     "400 IDBeaconConnection: is 0",
		`{"BeaconID":"databeacon","IDBeaconConnection":-3}`:      "400 IDBeaconConnection: is -3",
		`{"BeaconID":7,"IDBeaconConnection":3}`:                  "400 BeaconID: is no text",
		`["databeacon",3]`:                                       "400 body",
	} {
		k := &keeping{}
		s := serve(t, Config{Core: k})
		a := s.call("POST", "/Ultravisor/Persistence/Assign", body)
		got := strings.Join(k.told, "; ")
		if a.status != http.StatusOK {
			got += fmt.Sprint(a.status, " ", a.body["Error"])
		} else if a.body["Success"] != true {
			t.Errorf("%s is answered %s", body, a.text)
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", body, got, want)
		}
	}
}

func TestTheStateOfWhatIsAssignedIsToldAsByAStockHub(t *testing.T) {
	t.Parallel()
	k := &keeping{shown: []core.AssignmentStatus{
		{Family: ports.Queue, State: "unassigned"},
		{Family: ports.Manifest, State: "error", Backend: "m", BeaconID: "däta", IDBeaconConnection: 3, AssignedAt: "2026-01-01T00:00:00.000Z", Detail: "no such table", Remedy: "make it"},
	}}
	s := serve(t, Config{Core: k})
	first := `"Queue":{"State":"unassigned","AssignedBeaconID":null,"IDBeaconConnection":0,"LastError":null,"BootstrappedAt":null,"AssignedAt":null},` +
		`"Manifest":{"State":"error","AssignedBeaconID":"däta","IDBeaconConnection":3,"LastError":"no such table: make it","BootstrappedAt":null,"AssignedAt":"2026-01-01T00:00:00.000Z"}}`
	if a := s.call("GET", "/Ultravisor/Persistence/Status", nil); a.status != http.StatusOK || a.text != "{"+first {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := s.call("POST", "/Ultravisor/Persistence/Assign", `{}`); a.status != http.StatusOK || a.text != `{"Success":true,`+first {
		t.Errorf("%d %s", a.status, a.text)
	}
	k.shown = []core.AssignmentStatus{{Family: ports.Queue, State: "bootstrapped", BeaconID: "d", IDBeaconConnection: 3, Tagged: true, Detail: "well", BootstrappedAt: "2026-01-01T00:00:00.000Z"}}
	want := `{"Queue":{"State":"bootstrapped","AssignedBeaconID":"d","IDBeaconConnection":3,"LastError":null,"BootstrappedAt":"2026-01-01T00:00:00.000Z","AssignedAt":null}}`
	if a := s.call("GET", "/Ultravisor/Persistence/Status", nil); a.text != want {
		t.Errorf("%s", a.text)
	}
}

func TestOnlyWhoMayComeInAssigns(t *testing.T) {
	t.Parallel()
	k := &keeping{}
	secured := serve(t, Config{Core: k, Users: []User{{Name: "u", Password: "p"}}})
	for method, path := range map[string]string{"POST": "/Ultravisor/Persistence/Assign", "GET": "/Ultravisor/Persistence/Status"} {
		if a := secured.call(method, path, `{"BeaconID":"d","IDBeaconConnection":1}`); a.status != http.StatusUnauthorized || a.body["LoggedIn"] != false {
			t.Errorf("%s %s without a session: %d %s", method, path, a.status, a.text)
		}
		if a := serve(t, Config{}).call(method, path, `{}`); a.status != http.StatusServiceUnavailable {
			t.Errorf("%s %s of a hub without history: %d %s", method, path, a.status, a.text)
		}
	}
	open := serve(t, Config{Core: k})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, open.url+"/Ultravisor/Persistence/Assign", strings.NewReader(`{"BeaconID":"d","IDBeaconConnection":1}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Origin", "http://elsewhere.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusForbidden || len(k.told) > 0 {
		t.Errorf("a page of another site is answered %d; told %v", response.StatusCode, k.told)
	}
}
