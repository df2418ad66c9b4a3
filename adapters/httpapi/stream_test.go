package httpapi

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

func line(n int) string {
	return fmt.Sprintf(`{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"%d"}}}`, n) + "\n"
}

func TestAStreamAnswersEveryLineInOrder(t *testing.T) {
	t.Parallel()
	const lines = 20_000
	c := serve(t, &fakeHost{})
	var body strings.Builder
	for n := range lines {
		body.WriteString(line(n + 1))
	}
	got := c.send("POST", "/v1/actions", typeNDJSON, body.String())
	answers := strings.Split(strings.TrimSuffix(got.body, "\n"), "\n")
	if got.status != http.StatusOK || len(answers) != lines || got.header.Get("Content-Type") != typeNDJSON {
		t.Fatalf("%d answers, status %d", len(answers), got.status)
	}
	for n, answer := range answers {
		if want := fmt.Sprintf(`"Seq":%d,`, n+1); !strings.Contains(answer, want) {
			t.Fatalf("answer %d is %s", n+1, answer)
		}
	}
	for n, call := range c.host.begun() {
		if call.Source.Line != n+1 || !strings.Contains(string(call.Settings), fmt.Sprintf(`"%d"`, n+1)) {
			t.Fatalf("call %d is %s of line %d", n+1, call.Settings, call.Source.Line)
		}
	}
}

func TestABadLineIsAnAnswerAndTheStreamGoesOn(t *testing.T) {
	t.Parallel()
	tooLong := `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"x":"` + strings.Repeat("x", ports.MaxLineBytes) + `"}}}`
	for _, bad := range []struct{ name, line, code string }{
		{"not JSON", `{"Action":`, "invalid"},
		{"no object", `[1]`, "invalid"},
		{"invalid UTF-8", `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"x":"` + "\xff" + `"}}}`, "invalid"},
		{"unknown action", `{"Action":"QP_Nothing","Settings":{}}`, "invalid"},
		{"longer than a line may be", tooLong, "too_large"},
	} {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			c := serve(t, &fakeHost{})
			got := c.send("POST", "/v1/actions", typeNDJSON, line(1)+"\n  \r\n"+bad.line+"\n"+line(2))
			answers := strings.Split(strings.TrimSpace(got.body), "\n")
			if len(answers) != 3 || !strings.Contains(answers[1], `"Code":"`+bad.code+`"`) || !strings.Contains(answers[2], `"Seq":2`) {
				t.Fatalf("%s", got.body)
			}
			calls := c.host.begun()
			if len(calls) != 2 || calls[1].Source.Line != 5 {
				t.Errorf("%d calls, the last of line %d", len(calls), calls[len(calls)-1].Source.Line)
			}
			if !c.api.budget.TryAcquire(maxInWork) {
				t.Error("a part of the budget was not given back")
			}
		})
	}
}

func TestLinesOfEverySizeArriveWhole(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	var body strings.Builder
	var sizes []int
	for _, size := range []int{1, lineBuffer - 1, lineBuffer, lineBuffer + 1, 2 * lineBuffer, small - 1, small, small + 1, medium, 3 * medium, 20 * medium} {
		for _, end := range []string{"\n", "\r\n"} {
			text := `{"Action":"QP_AppendEvent","Settings":{"p":"` + strings.Repeat("x", size) + `"}}`
			sizes = append(sizes, len(`{"p":""}`)+size)
			body.WriteString(text + end)
		}
	}
	got := c.send("POST", "/v1/actions", typeNDJSON, strings.TrimSuffix(body.String(), "\n"))
	for i, call := range c.host.begun() {
		if len(call.Settings) != sizes[i] || call.Settings[len(call.Settings)-1] != '}' {
			t.Errorf("line %d has Settings of %d bytes, not %d", i+1, len(call.Settings), sizes[i])
		}
	}
	if n := strings.Count(got.body, "\n"); n != len(sizes) {
		t.Errorf("%d answers: %s", n, got.body)
	}
	if !c.api.budget.TryAcquire(maxInWork) {
		t.Error("a part of the budget was not given back")
	}
}

func TestALineIsNotOverwrittenByTheNext(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for range 50 {
		c.send("POST", "/v1/actions", typeNDJSON, line(11111)+line(22222))
	}
	for i, call := range c.host.begun() {
		want := fmt.Sprintf(`{"WorkItem":{"WorkItemHash":"%d"}}`, []int{11111, 22222}[i%2])
		if string(call.Settings) != want {
			t.Fatalf("call %d holds %s", i, call.Settings)
		}
	}
}

// open begins a stream whose lines the test writes one by one.
func (c *client) open(headers ...string) (lines *io.PipeWriter, answers *bufio.Scanner, end func()) {
	c.t.Helper()
	from, to := io.Pipe()
	ctx, cancel := context.WithCancel(c.t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.server.URL+"/v1/actions", from)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", typeNDJSON)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	write := make(chan error, 1)
	go func() {
		_, err := io.WriteString(to, line(0))
		write <- err
	}()
	got, err := c.server.Client().Do(r)
	if err != nil {
		cancel()
		c.t.Fatal(err)
	}
	if err := <-write; err != nil {
		c.t.Fatal(err)
	}
	answers = bufio.NewScanner(got.Body)
	if !answers.Scan() {
		c.t.Fatal(answers.Err())
	}
	return to, answers, func() { cancel(); to.Close(); got.Body.Close() }
}

func TestAnAnswerComesBeforeTheNextLineIsSent(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	lines, answers, end := c.open()
	defer end()
	for n := 2; n < 100; n++ {
		if _, err := io.WriteString(lines, line(n)); err != nil {
			t.Fatal(err)
		}
		if !answers.Scan() || !strings.Contains(answers.Text(), fmt.Sprintf(`"Seq":%d,`, n)) {
			t.Fatalf("line %d: %q, %v", n, answers.Text(), answers.Err())
		}
	}
	lines.Close()
	if answers.Scan() {
		t.Errorf("one answer too many: %s", answers.Text())
	}
}

// A store that hangs makes nobody wait for more than the answer that is due.
func TestAnAnswerDoesNotWaitForThatOfTheNextLine(t *testing.T) {
	t.Parallel()
	host := &fakeHost{gate: make(chan struct{}, 1)}
	host.gate <- struct{}{}
	c := serve(t, host)
	lines, answers, end := c.open()
	defer end()
	if _, err := io.WriteString(lines, line(2)+line(3)+line(4)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all lines are taken in", func() bool { return len(host.begun()) == 4 })
	for n := 2; n <= 4; n++ {
		host.gate <- struct{}{}
		if !answers.Scan() || !strings.Contains(answers.Text(), fmt.Sprintf(`"Seq":%d,`, n)) {
			t.Fatalf("line %d: %q, %v", n, answers.Text(), answers.Err())
		}
	}
	lines.Close()
}

func TestAStreamReadsAheadOnlySoFar(t *testing.T) {
	t.Parallel()
	host := &fakeHost{gate: make(chan struct{}, 10_000)}
	host.gate <- struct{}{}
	c := serve(t, host)
	lines, answers, end := c.open()
	defer end()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for n := range 5000 {
			if _, err := io.WriteString(lines, line(n)); err != nil {
				return
			}
		}
		lines.Close()
	}()
	eventually(t, "the window is full", func() bool { return len(host.begun()) >= windowLines })
	if n := len(host.begun()); n > windowLines+3 { // what is due, what is waited for, and what waits for its place
		t.Errorf("%d lines are begun, none is answered", n)
	}
	for range 5000 {
		host.gate <- struct{}{}
	}
	n := 1
	for answers.Scan() {
		n++
	}
	<-sent
	if n != 5001 || answers.Err() != nil {
		t.Errorf("%d answers, %v", n, answers.Err())
	}
}

func TestWhatAClientThatDiesHasSentStaysBegunAndNothingHangs(t *testing.T) {
	t.Parallel()
	host := &fakeHost{gate: make(chan struct{}, 1)}
	host.gate <- struct{}{}
	c := serve(t, host)
	lines, _, end := c.open()
	for n := range 10 {
		if _, err := io.WriteString(lines, line(n)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(lines, `{"Action":"QP_UpsertWorkItem","Settings":{"WorkI`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lines are begun", func() bool { return len(host.begun()) == 11 })
	end()
	c.server.CloseClientConnections()
	c.server.Close() // waits for the handler
	if n := len(host.begun()); n != 11 {
		t.Errorf("%d lines are begun; half a line is none", n)
	}
}

func TestASlowReaderDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	big := core.Answer{Payload: "WorkItem", Value: []byte(`"` + strings.Repeat("x", 1<<20) + `"`)}
	c := serve(t, &fakeHost{answer: func(core.Call, int) core.Answer { return big }})
	conn, err := net.Dial("tcp", c.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /v1/actions HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n\r\n", typeNDJSON)
	for n := range 100 { // it never reads its answers
		fmt.Fprintf(conn, "%x\r\n%s\r\n", len(line(n)), line(n))
	}
	eventually(t, "the slow one is at work", func() bool { return len(c.host.begun()) > 20 })
	if got := c.send("POST", "/v1/actions", typeJSON, upsert); got.status != http.StatusOK {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestDrainingEndsAStreamBehindItsLastLine(t *testing.T) {
	t.Parallel()
	host := &fakeHost{gate: make(chan struct{}, 10)}
	host.gate <- struct{}{}
	c := serve(t, host)
	lines, answers, end := c.open()
	defer end()
	if _, err := io.WriteString(lines, line(2)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the line is begun", func() bool { return len(host.begun()) == 2 })
	c.api.Drain()
	host.gate <- struct{}{}
	if !answers.Scan() || !strings.Contains(answers.Text(), `"Seq":2`) {
		t.Fatalf("%q, %v", answers.Text(), answers.Err())
	}
	if answers.Scan() {
		t.Errorf("one answer too many: %s", answers.Text())
	}
	for path, want := range map[string]int{"/v1/work-items": 503, "/readyz": 503, "/livez": 200, "/v1/status": 200} {
		if got := c.get(path); got.status != want {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.server.Config.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func zipped(text string) string {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
	return b.String()
}

func TestABodyMayBeZipped(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	for contentType, body := range map[string]string{typeJSON: upsert, typeNDJSON: line(1) + line(2)} {
		got := c.send("POST", "/v1/actions", contentType, zipped(body), "Content-Encoding", "gzip")
		if got.status != http.StatusOK || !strings.Contains(got.body, `"Success":true`) {
			t.Errorf("%s: %d %s", contentType, got.status, got.body)
		}
	}
	if n := len(c.host.begun()); n != 3 {
		t.Errorf("%d calls", n)
	}
	cut := zipped(line(1) + line(2))
	got := c.send("POST", "/v1/actions", typeNDJSON, cut[:len(cut)-5], "Content-Encoding", "gzip")
	if answers := strings.Split(strings.TrimSpace(got.body), "\n"); !strings.Contains(answers[len(answers)-1], `"Field":"body"`) {
		t.Errorf("a body that breaks off: %s", got.body)
	}
	if got := c.send("POST", "/v1/actions", typeJSON, upsert, "Content-Encoding", "br"); got.status != http.StatusUnsupportedMediaType {
		t.Errorf("another encoding: %d %s", got.status, got.body)
	}
}

func TestAStreamIsNamedForItsFile(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{})
	c.send("POST", "/v1/actions", typeNDJSON, line(1)+line(2), StreamHeader, "actions.ndjson", IdempotencyHeader, "k")
	calls := c.host.begun()
	if calls[0].Source.Stream == nil || calls[0].Source.Stream != calls[1].Source.Stream || calls[1].Source.Idempotency != "k" || calls[1].Source.Line != 2 {
		t.Errorf("%+v", calls[1].Source)
	}
	got := c.send("POST", "/v1/actions", typeNDJSON, line(1), StreamHeader, strings.Repeat("x", maxName+1))
	if got.status != http.StatusRequestEntityTooLarge || got.member(t, "Field") != StreamHeader {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAPanicOfOneLineLeavesTheHostRunning(t *testing.T) {
	t.Parallel()
	c := serve(t, &fakeHost{answer: func(_ core.Call, n int) core.Answer {
		if n == 2 {
			panic("a defect")
		}
		return core.Answer{Seq: uint64(n)}
	}})
	got := c.send("POST", "/v1/actions", typeNDJSON, line(1)+line(2)+line(3))
	if answers := strings.Split(strings.TrimSpace(got.body), "\n"); len(answers) != 2 || !strings.Contains(answers[1], `"Code":"internal"`) {
		t.Errorf("%s", got.body)
	}
	c.host.panics.Store(true)
	if got, err := http.Post(c.server.URL+"/v1/actions", typeNDJSON, strings.NewReader(strings.Repeat(line(1), 5000))); err == nil {
		text, err := io.ReadAll(got.Body)
		got.Body.Close()
		if err == nil {
			t.Errorf("a stream that was cut looks whole: %s", text)
		}
	}
	if got := c.get("/livez"); got.status != http.StatusOK {
		t.Errorf("%d", got.status)
	}
}
