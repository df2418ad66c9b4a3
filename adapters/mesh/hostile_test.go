package mesh

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"holdfast/ports"
)

// quick are the times of hubs whose peers are about to misbehave.
var quick = Timing{Ping: 100 * time.Millisecond, Write: 300 * time.Millisecond, Grace: 200 * time.Millisecond}

func TestASocketThatIsHalfOpenIsFoundByItsPings(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Silence = 300 * time.Millisecond
	s := serve(t, Config{Timing: timing})
	b := s.beacon("worker", 2, "Shell") // a peer that does not read answers no pings
	eventually(t, "its end", func() bool { return s.sockets() == 0 })
	if a := s.call("GET", "/Beacon/"+b.id, nil); a.body["Status"] != "Offline" {
		t.Errorf("it is %v", a.body["Status"])
	}
}

// A client whose only thread is in its work answers nothing meanwhile, and reports over the socket that it had.
func TestABeaconThatIsTooBusyToAnswerKeepsItsSocketAndGetsNoWorkMeanwhile(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Silence = 200 * time.Millisecond
	s := serve(t, Config{Timing: timing})
	b := s.beacon("worker", 2, "Shell")
	first := s.later(within(t, testPatience), shell("worker"))
	hash, _ := b.work() // and from now on it does not read
	s.muted("worker")
	second := s.later(within(t, testPatience), shell("worker"))
	if r := <-s.later(within(t, 3*timing.Silence), shell("worker")); ports.CodeOf(r.err) != ports.Deadline || !strings.Contains(r.err.Error(), "did not answer") {
		t.Errorf("what could not wait: %v", r.err)
	}
	s.hub.tick()
	if a := s.call("GET", "/Beacon/"+b.id, nil); a.body["Status"] != "Busy" || s.state().waiting != 1 {
		t.Errorf("it is %s, and %d works wait", a.text, s.state().waiting)
	}
	b.complete(hash, map[string]any{})
	if r := <-first; r.err != nil {
		t.Errorf("its report: %v", r.err)
	}
	hash, _ = b.work()
	b.complete(hash, map[string]any{})
	if r := <-second; r.err != nil {
		t.Errorf("what waited: %v", r.err)
	}
}

func TestAQuietSocketThatAnswersPingsStaysOnline(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{Timing: Timing{Ping: 250 * time.Millisecond}})
	b := s.beacon("worker", 1, "Shell")
	ctx := b.conn.CloseRead(context.Background())
	before := s.seen("worker")
	eventually(t, "a sign of life", func() bool { return s.seen("worker").After(before.Add(100 * time.Millisecond)) })
	if ctx.Err() != nil || s.sockets() != 1 {
		t.Error("it was closed")
	}
}

func (s *stand) seen(name string) time.Time {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	return s.hub.registry.byName[name].seenAt
}

func TestASlowReaderHurtsNobodyElse(t *testing.T) {
	t.Parallel()
	timing := quick
	timing.Ping = time.Minute // its slowness alone has to do
	s := serve(t, Config{Timing: timing})
	s.beacon("slow", 100, "Shell")
	good := s.beacon("good", 1, "Shell")
	large := shell("slow")
	large.Settings = []byte(`{"Data":"` + strings.Repeat("x", 256<<10) + `"}`)
	var stuck []<-chan reply
	for range 80 {
		stuck = append(stuck, s.later(within(t, testPatience), large))
	}
	for range 5 {
		got := s.later(within(t, testPatience), shell("good"))
		hash, _ := good.work()
		good.complete(hash, map[string]any{})
		if r := <-got; r.err != nil {
			t.Error(r.err)
		}
	}
	for _, got := range stuck {
		if code := ports.CodeOf((<-got).err); code != ports.BackendGone && code != ports.Unavailable {
			t.Errorf("got %q", code)
		}
	}
	eventually(t, "the slow one's end", func() bool { return s.sockets() == 1 })
}

func TestGarbageIsRefusedAndTooMuchOfItEndsTheSocket(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	for _, garbage := range []string{"", "{", "null", "[]", "\x00\x01", `{"Action":`, strings.Repeat("[", 10_000), `{"Action":"WorkComplete"}`, "{\"Action\":\"\xff\"}"} {
		b.say(garbage)
		if frame := b.expect("FrameRefused"); frame["Code"] != "invalid" {
			t.Errorf("%q: %v", garbage, frame)
		}
	}
	for _, unknown := range []string{`{}`, `{"Action":"Dance"}`, `{"Action":7}`, `{"Action":"WorkComplete","WorkItemHash":"wi-never"}`} {
		b.say(unknown)
	}
	b.say(`{"Action":"QueueSubscribe"}`)
	if frame := b.expect("FrameRefused"); frame["Code"] != "unimplemented" {
		t.Errorf("a stream: %v", frame)
	}
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := b.work() // it is as good as before
	b.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	for range maxOdd + 1 {
		b.say("garbage")
		b.expect("FrameRefused")
	}
	if _, err := b.hear(); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("got %v", err)
	}
}

func TestAReportThatIsTooLargeEndsItsWorkAndNotItsSocket(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	s := serve(t, Config{Limits: Limits{Frame: limit}})
	b := s.beacon("worker", 1, "Shell")
	for _, size := range []int{32768, 32769, limit - 200, limit + 1, 3 * limit} {
		got := s.later(within(t, testPatience), shell("worker"))
		hash, _ := b.work()
		if data := strings.Repeat("x", size); size%2 == 0 { // the hash at the beginning, and at the end
			b.say(fmt.Sprintf(`{"Action":"WorkComplete","WorkItemHash":%q,"Outputs":{"Data":%q},"Log":[]}`, hash, data))
		} else {
			b.complete(hash, map[string]any{"Data": data})
		}
		r := <-got
		if r.err != nil || (size < limit) != (r.answer.Failure == "") {
			t.Errorf("%d bytes: %v %q", size, r.err, r.answer.Failure)
		}
		if size > limit {
			if frame := b.expect("FrameRefused"); frame["Code"] != "too_large" || frame["Limit"] != float64(limit) {
				t.Errorf("%d bytes: %v", size, frame)
			}
		}
	}
	poller := s.call("POST", "/Beacon/Register", map[string]any{"Name": "poller", "Capabilities": []string{"Other"}}).body["BeaconID"]
	got := s.later(within(t, testPatience), ports.Work{Beacon: "poller", Capability: "Other"})
	var item map[string]any
	eventually(t, "work", func() bool {
		item, _ = s.call("POST", "/Beacon/Work/Poll", map[string]any{"BeaconID": poller}).body["WorkItem"].(map[string]any)
		return item != nil
	})
	a := s.call("POST", "/Beacon/Work/"+item["WorkItemHash"].(string)+"/Complete", map[string]any{"Outputs": strings.Repeat("x", 2*limit)})
	if a.status != http.StatusRequestEntityTooLarge || a.body["Limit"] != float64(limit) {
		t.Errorf("over HTTP: %d %s", a.status, a.text)
	}
	if r := <-got; r.err != nil || r.answer.Failure == "" {
		t.Errorf("over HTTP: %+v", r)
	}
}

// A frame of 300 MiB on the wire, beside others that go on; a quarter of it in make test.
func TestAHugeFrameIsRefusedWhileOthersGoOn(t *testing.T) {
	size, limits := 75<<20, Limits{Frame: 64 << 20}
	if whole() {
		size, limits = 300<<20, Limits{}
	}
	s := serve(t, Config{Limits: limits})
	huge, good := s.beacon("huge", 1, "Shell"), s.beacon("good", 1, "Shell")
	got := s.later(within(t, 3*testPatience), shell("huge"))
	hash, _ := huge.work()
	var sent sync.WaitGroup
	sent.Go(func() {
		w, err := huge.conn.Writer(context.Background(), websocket.MessageText)
		if err == nil {
			_, err = fmt.Fprintf(w, `{"Action":"WorkComplete","WorkItemHash":%q,"Outputs":{"Data":"`, hash)
		}
		piece := []byte(strings.Repeat("x", 1<<20))
		for n := 0; n < size && err == nil; n += len(piece) {
			_, err = w.Write(piece)
		}
		if err == nil {
			_, err = w.Write([]byte(`"}}`))
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Error(err)
		}
	})
	done := make(chan struct{})
	go func() {
		sent.Wait()
		close(done)
	}()
	most := uint64(0)
	for turns := 0; ; turns++ {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		most = max(most, m.HeapInuse)
		select {
		case <-done:
			if frame := huge.expect("FrameRefused"); frame["Code"] != "too_large" {
				t.Errorf("it was told %v", frame)
			}
			if r := <-got; r.err != nil || !strings.Contains(r.answer.Failure, "limit") {
				t.Errorf("its caller got %v %q", r.err, r.answer.Failure)
			}
			t.Logf("%d works of another beacon meanwhile, at most %d MiB in use", turns, most>>20)
			if limit := 4 * uint64(s.hub.limits.Frame); most > limit {
				t.Errorf("%d bytes were in use", most)
			}
			return
		default:
		}
		other := s.later(within(t, testPatience), shell("good"))
		hash, _ := good.work()
		good.complete(hash, map[string]any{})
		if r := <-other; r.err != nil {
			t.Fatal(r.err)
		}
	}
}

func TestFilesAreRefusedAndTheWorkGoesOn(t *testing.T) {
	t.Parallel()
	s := serve(t, Config{})
	b := s.beacon("worker", 1, "Shell")
	got := s.later(within(t, testPatience), shell("worker"))
	hash, _ := b.work()
	b.say(map[string]any{"Action": "WorkResultUpload", "WorkItemHash": hash, "OutputFilename": "a.bin", "OutputSize": 100_000})
	if err := b.conn.Write(context.Background(), websocket.MessageBinary, make([]byte, 100_000)); err != nil {
		t.Fatal(err)
	}
	frame, err := b.hear()
	if err != nil || frame["Action"] != "WorkResultUploadAck" || frame["Success"] != false || frame["WorkItemHash"] != hash {
		t.Errorf("got %v %v", frame, err)
	}
	b.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	if a := s.call("POST", "/Beacon/Work/"+hash+"/Upload", "raw"); a.status != 404 {
		t.Errorf("over HTTP: %d %s", a.status, a.text)
	}
}

func TestASocketOfNobodyIsClosed(t *testing.T) {
	t.Parallel()
	now := newHand(noon)
	s := serve(t, Config{Clock: now.read})
	p := s.dial()
	eventually(t, "its socket", func() bool { return s.sockets() == 1 })
	now.move(2 * time.Minute)
	s.hub.tick()
	if _, err := p.hear(); err == nil {
		t.Error("it was not closed")
	}
}

// hand is a clock that a test moves.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func newHand(at time.Time) *hand { return &hand{now: at} }

func (h *hand) read() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}
