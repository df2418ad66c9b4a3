package mesh

import (
	"runtime"
	"strings"
	"sync"
	"testing"
)

// So many sockets that say nothing; 5,000 in the long form.
func TestManyIdleSocketsCostLittleAndTheLimitIsTold(t *testing.T) {
	many := 500
	if whole() {
		many = 5000
	}
	s := serve(t, Config{Limits: Limits{Sockets: many + 1}})
	before := memory1()
	peers := make([]*peer, many)
	var wait sync.WaitGroup
	for part := range 20 {
		wait.Go(func() {
			for i := part; i < many; i += 20 {
				p, err := s.tryDial()
				if err != nil {
					t.Error(err)
					return
				}
				peers[i] = p
			}
		})
	}
	wait.Wait()
	good := s.beacon("good", 1, "Shell")
	got := s.later(within(t, testPatience), shell("good"))
	hash, _ := good.work()
	good.complete(hash, map[string]any{})
	if r := <-got; r.err != nil {
		t.Error(r.err)
	}
	each := (memory1() - before) / uint64(many)
	t.Logf("%d bytes for each connection, both ends together", each)
	if each > 100<<10 {
		t.Errorf("each connection costs %d bytes", each)
	}
	if _, err := s.tryDial(); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("one too many: %v", err)
	}
	for _, p := range peers {
		if p != nil {
			_ = p.conn.CloseNow()
		}
	}
	eventually(t, "their end", func() bool { return s.sockets() == 1 })
}

func memory1() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}
