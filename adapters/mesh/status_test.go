package mesh

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The rejection is all that an operator ever sees of a stock client that was rejected: it waits for ever.
func TestEachRejectedBeaconIsInTheLogHoweverManyLoginsFail(t *testing.T) {
	t.Parallel()
	var log logged
	s := serve(t, Config{Users: ann, JoinSecret: "join", Logger: log.logger()})
	for range 3 {
		s.call("POST", "/1.0/Authenticate", map[string]any{"UserName": "ann", "Password": "wrong"})
	}
	for _, name := range []string{"one", "two", "one"} {
		p := s.dial()
		p.say(map[string]any{"Action": "BeaconRegister", "Name": name, "Capabilities": []string{"Shell"}, "JoinSecret": "wrong"})
		p.expect("BeaconRejected")
		if _, err := p.hear(); websocket.CloseStatus(err) != rejected {
			t.Errorf("%s: %v", name, err)
		}
	}
	for message, times := range map[string]int{"a login failed": 1, "beacon=one": 1, "beacon=two": 1} {
		if n := strings.Count(log.String(), message); n != times {
			t.Errorf("%q is logged %d times: %s", message, n, log.String())
		}
	}
}

func TestWarningsAreBoundedAndSayHowManyWereLeftOut(t *testing.T) {
	t.Parallel()
	var w warnings
	for i := range 1000 {
		w.pass("rejected", fmt.Sprint(i), noon)
	}
	if len(w) > maxSubjects+1 {
		t.Errorf("%d subjects are kept", len(w))
	}
	for range 3 {
		w.pass("rejected", "0", noon)
	}
	if left, pass := w.pass("rejected", "0", noon.Add(seldomEvery)); !pass || left != 3 {
		t.Errorf("%v, and %d were left out", pass, left)
	}
	if _, pass := w.pass("rejected", "new", noon.Add(time.Hour)); !pass || len(w) > 1 {
		t.Errorf("%v, and %d subjects are kept", pass, len(w))
	}
}
