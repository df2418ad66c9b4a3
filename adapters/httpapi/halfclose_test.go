package httpapi

import (
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"holdfast/core"
)

// A caller may close its half behind the request and still read. net/http takes that for a caller that is gone.
func TestACallerThatClosesItsHalfIsAnswered(t *testing.T) {
	t.Parallel()
	for contentType, body := range map[string]string{
		typeJSON:   upsert,
		typeNDJSON: strings.Repeat(upsert+"\n", 50),
	} {
		gate := make(chan struct{})
		c := serve(t, &fakeHost{gate: gate, answer: func(core.Call, int) core.Answer { return core.Answer{Seq: 7} }})
		conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST /v1/actions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", contentType, len(body), body)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		for range 50 { // until the last line is in, whatever it is
			if len(c.host.begun()) == strings.Count(body, `"Action"`) {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
		close(gate)
		text, err := io.ReadAll(conn)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Count(string(text), `"Seq":7`), strings.Count(body, `"Action"`); got != want {
			t.Errorf("%s: %d of %d calls are answered: %.300s", contentType, got, want, text)
		}
		conn.Close()
	}
}
