package mesh

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/mesh/stock"
	"holdfast/internal/certtest"
	"holdfast/internal/config"
)

// byTLS serves a handler by TLS, with a certificate that no machine trusts by itself.
func byTLS(t *testing.T, handler http.Handler) (url string, roots *x509.CertPool) {
	t.Helper()
	files := certtest.New(t, "127.0.0.1")
	pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
	if err != nil {
		t.Fatal(err)
	}
	if roots, err = config.Authorities(files.Authority); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	server.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil) // it tells of those who do not trust it
	server.StartTLS()
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL, roots
}

// echoing is an action that gives back its settings.
func echoing(capability string) stock.Action {
	return stock.Action{Capability: capability, Name: "Echo", Do: func(_ context.Context, w *stock.Work) (any, error) { return w.Settings, nil }}
}

func TestAMemberJoinsAHubBehindTLS(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub := stock.NewHub(stock.HubConfig{})
	url, roots := byTLS(t, hub)
	t.Cleanup(hub.Close)
	joinedMember(t, url, Over(host), func(c *MemberConfig) { c.Roots = roots })
	hub.UpsertManifest(made(map[string]any{"Hash": "run-1", "Status": "Complete"}))
	awaitUltravisor(t, hub, "the answer", settledHub)
	if got := manifestOf(t, host, "run-1"); got["Status"] != "Complete" {
		t.Errorf("the run is kept as %v", got)
	}
}

func TestAMemberJoinsNoHubWhoseCertificateItDoesNotTrust(t *testing.T) {
	t.Parallel()
	hub := stock.NewHub(stock.HubConfig{})
	url, _ := byTLS(t, hub)
	t.Cleanup(hub.Close)
	m := unjoined(t, url, nil, nil)
	run(t, m)
	awaitMember(t, m, "the reason", func(s MemberStatus) bool {
		return s.State == MemberConnecting && strings.Contains(s.Detail, "certificate") && strings.Contains(s.Remedy, "join_ca")
	})
	if s := hub.State(); len(s.Beacons) > 0 {
		t.Errorf("the hub knows %+v", s.Beacons)
	}
}

// A stock beacon takes work by TLS as well, over its socket and by polling.
func TestBeaconsReachTheHubByTLS(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	url, roots := byTLS(t, s.hub.Handler())
	for _, polls := range []bool{false, true} {
		name := map[bool]string{false: "socket", true: "poller"}[polls]
		b := stock.NewBeacon(stock.BeaconConfig{
			ServerURL: url, Name: name, ForceHTTP: polls, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, Clock: stock.Hurry(100),
			Actions: []stock.Action{echoing("C-" + name)},
		})
		t.Cleanup(b.Kill)
		if err := b.Start(within(t, testPatience)); err != nil {
			t.Fatal(err)
		}
		a := s.call(http.MethodPost, "/Beacon/Work/Dispatch", map[string]any{"Capability": "C-" + name, "Action": "Echo", "Settings": map[string]any{"a": 1}, "TimeoutMs": 10_000})
		if a.status != http.StatusOK || !strings.Contains(a.text, `"a":1`) {
			t.Errorf("%s: %d %s", name, a.status, a.text)
		}
	}
}
