package acceptance

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

func TestAStopUnderLoadIsInOrderAndKeepsWhatWasAcknowledged(t *testing.T) {
	t.Parallel()
	for _, stop := range []struct {
		name   string
		signal syscall.Signal
		group  bool
	}{
		{"SIGTERM to the host", syscall.SIGTERM, false},
		{"SIGINT to the whole process group", syscall.SIGINT, true},
	} {
		t.Run(stop.name, func(t *testing.T) {
			t.Parallel()
			h := e2e.StartWith(t, e2e.Setup{Group: true})
			for round := range rounds(3) {
				acked := stopUnderLoad(t, h, round, stop.signal, stop.group)
				h.Restart(t)
				client := h.Client()
				client.Settle(t)
				for _, hash := range acked {
					if a, err := client.Get(t.Context(), "/v1/work-items/"+url.PathEscape(hash), nil); err != nil || !a.Success {
						t.Errorf("%s was acknowledged and is answered %d: %v", hash, a.Status, err)
					}
				}
				client.Close()
			}
		})
	}
}

// stopUnderLoad stops a host that 16 callers and two streams write to, and gives what was acknowledged.
func stopUnderLoad(t *testing.T, h *e2e.Host, round int, signal syscall.Signal, group bool) (acked []string) {
	t.Helper()
	var mu sync.Mutex
	took := func(hashes ...string) {
		mu.Lock()
		defer mu.Unlock()
		acked = append(acked, hashes...)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			client := h.Client()
			defer client.Close()
			for n := 0; ctx.Err() == nil; n++ {
				hash := fmt.Sprintf("call-%d-%d-%d", round, c, n)
				a, err := client.Send(ctx, "", "QP_UpsertWorkItem", item(hash, `"Status":"Running"`))
				if err != nil {
					return // the host is gone
				}
				if a.Success {
					took(hash)
				}
			}
		})
	}
	for s := range 2 {
		callers.Go(func() {
			client := h.Client()
			defer client.Close()
			for n := 0; ctx.Err() == nil; n++ {
				var lines strings.Builder
				var hashes []string
				for i := range 100 {
					hash := fmt.Sprintf("line-%d-%d-%d-%d", round, s, n, i)
					hashes = append(hashes, hash)
					lines.Write(append(e2e.Line("QP_UpsertWorkItem", item(hash, `"Status":"Running"`)), '\n'))
				}
				answers, err := client.Stream(ctx, "", strings.NewReader(lines.String()))
				for i, a := range answers {
					if a.Success {
						took(hashes[i])
					}
				}
				if err != nil {
					return
				}
			}
		})
	}
	e2e.Await(t, "load", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(acked) < 500 {
			return fmt.Errorf("%d writes", len(acked))
		}
		return nil
	})
	began := time.Now()
	if code := h.End(signal, group); code != 0 {
		t.Errorf("the exit code is %d", code)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	cancel()
	callers.Wait()
	h.Gone(t)
	if _, err := os.Stat(h.Data() + "/holdfast.lock"); err == nil {
		held, err := os.OpenFile(h.Data()+"/holdfast.lock", os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Flock(int(held.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			t.Errorf("the lock is still held: %v", err)
		}
		_ = held.Close()
	}
	return acked
}
