package core

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"holdfast/ports"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// stage is a Host at work among parts in memory, in a bubble where time passes only when everybody waits for it.
type stage struct {
	t        testing.TB
	config   Config
	store    *memory
	state    *memoryState
	journals map[ports.Family]*memoryJournal
	host     *Host
	rest     context.CancelFunc
	ran      chan error
	revive   bool // a store that hangs is killed when the host asks for it
	mirrors  []*mirror
	made     func(s *stage) // is called with every Host before it runs
}

// play starts a Host, lets it come to rest, runs a scene with it and ends it.
func play(t *testing.T, scene func(t *testing.T, s *stage)) {
	t.Helper()
	playWith(t, nil, scene)
}

func playWith(t *testing.T, prepare func(s *stage), scene func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t)
		if prepare != nil {
			prepare(s)
		}
		s.begin()
		defer s.close()
		synctest.Wait()
		scene(t, s)
	})
}

func newStage(t testing.TB) *stage {
	s := &stage{t: t, config: Config{Version: "test", Ack: AckLocal}, store: newMemory(), state: newMemoryState(), journals: map[ports.Family]*memoryJournal{}}
	for _, f := range ports.Families {
		s.journals[f] = newMemoryJournal()
	}
	return s
}

// close ends the Host and everything behind it.
func (s *stage) close() {
	s.t.Helper()
	s.end()
	s.store.end()
	for _, m := range s.mirrors {
		m.end()
		for _, fault := range m.found() {
			s.t.Error(fault)
		}
	}
}

func (s *stage) begin() {
	s.t.Helper()
	c := s.config
	c.State, c.Journals = s.state, map[ports.Family]ports.Journal{}
	if c.Logger == nil {
		c.Logger = hclog.NewNullLogger()
	}
	for f, j := range s.journals {
		c.Journals[f] = j
	}
	c.Local = Local{Name: "local", Kind: "memory", Store: s.store, Health: s.store.health}
	if s.revive {
		c.Local.Restart = func(string) { s.store.kill(nil) }
	}
	var err error
	if s.host, err = New(c); err != nil {
		s.t.Fatal(err)
	}
	if s.made != nil {
		s.made(s)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.rest, s.ran = cancel, make(chan error, 1)
	go func() { s.ran <- s.host.Run(ctx) }()
}

// end stops the Host in order.
func (s *stage) end() {
	s.t.Helper()
	began := time.Now()
	s.rest()
	if err := <-s.ran; err != nil {
		s.t.Errorf("the host ends with %v", err)
	}
	if took := time.Since(began); took > time.Second {
		s.t.Errorf("the host took %s to end", took)
	}
}

// again is another start of the host on the same data directory.
func (s *stage) again() {
	s.t.Helper()
	s.end()
	for _, j := range s.journals {
		j.reopen(0)
	}
	s.begin()
	synctest.Wait()
}

func call(a ports.Action, format string, args ...any) Call {
	return Call{Action: a, Settings: fmt.Appendf(nil, format, args...), Source: Source{Actor: "tester", Origin: ports.OriginHTTP, Line: 1}}
}

func upsert(key, status string) Call {
	return call(ports.UpsertWorkItem, `{"WorkItem":{"WorkItemHash":%q,"Status":%q}}`, key, status)
}

func patch(key, status string) Call {
	return call(ports.UpdateWorkItem, `{"WorkItemHash":%q,"Patch":{"Status":%q}}`, key, status)
}

// does carries out a write, which must end so.
func (s *stage) does(c Call, want Situation) Answer {
	s.t.Helper()
	a := s.host.Do(s.t.Context(), c)
	if a.Situation != want {
		s.t.Errorf("%s %s is answered %s, want %s", c.Action, c.Settings, a.AppendJSON(nil), flagOf(want))
	}
	return a
}

func flagOf(s Situation) string {
	return fmt.Sprintf("situation %d (%s)", s, situations[s].flag)
}

// in lets time pass and everybody come to rest.
func (s *stage) in(d time.Duration) {
	<-time.After(d) // in the bubble: it takes no time
	synctest.Wait()
}

// item gives an item as a caller reads it.
func (s *stage) item(key string) (read struct {
	Available, Success, NotFound, Stale, Incomplete bool
	WorkItem                                        map[string]any
}) {
	s.t.Helper()
	text := s.host.Item(s.t.Context(), key).AppendJSON(nil)
	if err := json.Unmarshal(text, &read); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return read
}

// status expects an item's status, fresh.
func (s *stage) status(key, want string) {
	s.t.Helper()
	if got := s.item(key); got.WorkItem["Status"] != want || got.Stale {
		s.t.Errorf("item %s reads %+v, want status %s", key, got, want)
	}
}

func (s *stage) queue() *family { return s.host.families[ports.Queue] }

// asides lists the Seqs that are set aside in the Queue family.
func (s *stage) asides() []uint64 {
	s.t.Helper()
	list, err := s.host.Asides()
	if err != nil {
		s.t.Fatal(err)
	}
	var seqs []uint64
	for _, a := range list {
		seqs = append(seqs, a.Seq)
	}
	return seqs
}
