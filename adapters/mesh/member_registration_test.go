package mesh

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
)

func TestAHubThatForgotTheMemberIsToldAgain(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, quickCore(), nil)
	for n := range 3 {
		old := m.Status().BeaconID
		hub.Forget(m.name) // as the end of an older socket of that name does, which is told to nobody
		awaitMember(t, m, "another registration", func(s MemberStatus) bool { return s.Registrations >= uint64(n+2) && s.BeaconID != old })
	}
	hub.Enqueue(stock.Spec{Capability: "Nobody"})
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Failures != 0 || s.Beacon(m.name) == nil {
		t.Errorf("the hub: %+v", s)
	}
}

func TestAHubThatWasStartedAgainIsJoinedAgain(t *testing.T) {
	t.Parallel()
	host := history(t)
	hub, url := ultravisor(t, stock.HubConfig{})
	m := joinedMember(t, url, Over(host), nil)
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	hash := hub.Enqueue(stock.Spec{Capability: "Echo"})
	awaitUltravisor(t, hub, "the answers", settledHub)
	for n := range 3 {
		hub.Restart()
		awaitMember(t, m, "another registration", func(s MemberStatus) bool { return s.Registrations >= uint64(n+2) })
	}
	hub.Imagine(stock.Registration{Name: "worker", Capabilities: []string{"Echo"}}, true)
	if err := hub.Complete(hash, stock.Result{}); err != nil {
		t.Fatal(err)
	}
	awaitUltravisor(t, hub, "the answers", settledHub)
	eventually(t, "the end of the item", func() bool { return itemOf(t, host, hash)["Status"] == "Complete" })
}

func TestASecuredHubIsJoinedWithItsSecretAndSeenWithALogin(t *testing.T) {
	t.Parallel()
	secured := stock.HubConfig{Secured: true, Auth: &stock.Auth{Users: map[string]string{"holdfast": "pass-1"}, JoinSecret: "join-1"}}
	for _, c := range []struct {
		name         string
		change       func(*MemberConfig)
		state        string
		says, remedy string
	}{
		{"with both", func(c *MemberConfig) { c.JoinSecret, c.User, c.Password = "join-1", "holdfast", "pass-1" }, MemberJoined, "", ""},
		{"with the secret only it is joined, but blind", func(c *MemberConfig) { c.JoinSecret = "join-1" }, MemberJoined, "not known", "join_user"},
		{"a wrong login is told", func(c *MemberConfig) { c.JoinSecret, c.User, c.Password = "join-1", "holdfast", "pass-2" }, MemberJoined, "Authentication failed", "join_user"},
		{"with a login only it is rejected", func(c *MemberConfig) { c.User, c.Password = "holdfast", "pass-1" }, MemberRejected, "lets this beacon not in", "join_with"},
		{"with another secret too", func(c *MemberConfig) { c.JoinSecret = "join-2" }, MemberRejected, "denied", "join_with"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			hub, url := ultravisor(t, secured)
			var l logged
			m := unjoined(t, url, quickCore(), func(config *MemberConfig) {
				c.change(config)
				config.Logger = l.logger()
			})
			run(t, m)
			awaitMember(t, m, c.name, func(s MemberStatus) bool {
				return s.State == c.state && strings.Contains(s.Detail, c.says) && (c.says == "") == (s.Detail == "") && (s.State != MemberJoined || !s.CheckedAt.IsZero())
			})
			s := m.Status()
			if !strings.Contains(s.Remedy, c.remedy) {
				t.Errorf("the remedy is %q", s.Remedy)
			}
			if c.state == MemberJoined {
				hub.Enqueue(stock.Spec{Capability: "Nobody"})
				awaitUltravisor(t, hub, "the answers", settledHub)
				if failed := hub.State().Failures; failed != 0 {
					t.Errorf("%d calls failed", failed)
				}
			}
			for _, secret := range []string{"join-1", "join-2", "pass-1", "pass-2"} {
				if strings.Contains(l.String()+fmt.Sprint(m.Status()), secret) {
					t.Errorf("%q is told:\n%s%+v", secret, l.String(), m.Status())
				}
			}
		})
	}
}

func TestAMemberThatWasRejectedComesBackUntilItIsLetIn(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{Secured: true, BootstrapSecret: "boot"})
	m := unjoined(t, url, quickCore(), func(c *MemberConfig) { c.JoinSecret = "join-1" })
	run(t, m)
	awaitMember(t, m, "a rejection", func(s MemberStatus) bool { return s.State == MemberRejected })
	auth := stock.NewBeacon(stock.BeaconConfig{ServerURL: url, Name: "auth", JoinSecret: "boot", Actions: []stock.Action{
		{Capability: "Authentication", Name: "AUTH_ValidateBeaconJoin", Do: func(context.Context, *stock.Work) (any, error) {
			return map[string]any{"Allowed": true}, nil
		}},
	}})
	t.Cleanup(auth.Kill)
	if err := auth.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	awaitMember(t, m, "a member that is in", func(s MemberStatus) bool { return s.State == MemberJoined })
	if hub.State().Beacon(m.name) == nil {
		t.Error("the hub does not know it")
	}
}

func TestAStopLeavesTheHubAndAnswersWhatIsInHand(t *testing.T) {
	t.Parallel()
	c := newSlowCore()
	hub, url := ultravisor(t, stock.HubConfig{BridgeTimeout: time.Minute})
	m := unjoined(t, url, c, func(c *MemberConfig) { c.Timing.Answer = 10 * time.Second })
	stop := run(t, m)
	awaitMember(t, m, "a member that is in", MemberStatus.Joined)
	hub.Enqueue(stock.Spec{Capability: "Nobody"})
	awaitMember(t, m, "the calls", func(s MemberStatus) bool { return s.InHand == 2 })
	time.AfterFunc(50*time.Millisecond, func() { close(c.let) })
	stop()
	awaitUltravisor(t, hub, "the answers", settledHub)
	if s := hub.State(); s.Beacon(m.name) != nil || s.Failures != 0 || m.Status().State != MemberStopped {
		t.Errorf("after the stop: %+v, %+v", s, m.Status())
	}
}

// The hub takes away the record of a beacon when an older socket of its name ends, however late that is.
func TestARegistrationThatAnOlderSocketTakesAwayIsMadeAgainSoon(t *testing.T) {
	t.Parallel()
	hub, url := ultravisor(t, stock.HubConfig{})
	older := stock.NewBeacon(stock.BeaconConfig{ServerURL: url, Name: "holdfast-1"})
	t.Cleanup(older.Kill)
	if err := older.Start(within(t, testPatience)); err != nil {
		t.Fatal(err)
	}
	m := joinedMember(t, url, quickCore(), func(c *MemberConfig) { c.Timing.Check, c.Timing.Soon = time.Hour, 30*time.Millisecond })
	before := m.Status()
	older.Kill()
	awaitUltravisor(t, hub, "the end of the older socket", func(s stock.HubState) bool {
		return s.Beacon(m.name) == nil || s.Beacon(m.name).BeaconID != before.BeaconID
	})
	awaitMember(t, m, "another registration", func(s MemberStatus) bool {
		return s.Registrations > before.Registrations && s.BeaconID != before.BeaconID
	})
	if hub.State().Beacon(m.name) == nil {
		t.Error("the hub does not know it")
	}
}

func TestAHubThatNeverKnowsItsBeaconsIsAskedCalmly(t *testing.T) {
	t.Parallel()
	hub, _ := ultravisor(t, stock.HubConfig{})
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/Beacon/") {
			http.NotFound(w, r)
			return
		}
		hub.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	m := joinedMember(t, proxy.URL, quickCore(), func(c *MemberConfig) { c.Timing.Check, c.Timing.Soon = time.Hour, 20*time.Millisecond })
	awaitMember(t, m, "the looks", func(s MemberStatus) bool { return s.Registrations >= forgets })
	quiet := time.NewTimer(400 * time.Millisecond)
	defer quiet.Stop()
	<-quiet.C
	if n := m.Status().Registrations; n > forgets+1 {
		t.Errorf("it registered %d times", n)
	}
}
