package acceptance

import (
	"bytes"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// What a follower must bear beside ordinary changes: the largest records, a stop while it hangs, and a twin.

func TestTheLargestRecordsReachAMirror(t *testing.T) {
	if testing.Short() {
		t.Skip("sends records of 64 MiB")
	}
	t.Parallel()
	m := startMirrored(t, "mirror")
	m.host.Hold(t, "mirror")
	bodies := map[string]string{}
	for i, size := range []int{64 * mebibyte, 40 * mebibyte} {
		hash := fmt.Sprintf("large-%d", i)
		settings, body := sized(hash, size)
		if a := decided(t, m.host, m.client, "QP_UpsertWorkItem", settings); !a.Success {
			t.Fatalf("%d bytes are answered %d %s: %s", size, a.Status, a.Code, a.Reason)
		}
		bodies[hash] = body
	}
	m.write("small", false)
	m.host.Free(t, "mirror")
	m.host.AwaitCopied(t)
	for hash, want := range bodies {
		var answer []byte
		e2e.Await(t, hash+" is read in time", func() error { // so much may take a busy machine too long
			var status int
			if status, answer = get(t, m.host, "/v1/work-items/"+hash); status != 200 {
				return fmt.Errorf("it is answered %d: %.300s", status, answer)
			}
			return nil
		})
		if !bytes.Contains(answer, []byte(want)) {
			t.Errorf("%s is answered with %d bytes: %.300s", hash, len(answer), answer)
		}
	}
	m.host.Verify(t, "local", "mirror")
}

func TestAFrozenFollowerDoesNotHoldUpTheStop(t *testing.T) {
	t.Parallel()
	m := startMirrored(t, "mirror")
	live := e2e.StartWorkload(t, m.host.Client(), 20*time.Millisecond)
	m.change("many", 500)
	m.signal("mirror", syscall.SIGSTOP)
	m.change("more", 500)
	live.End()
	began := time.Now()
	code := m.host.End(syscall.SIGTERM, false)
	if took := time.Since(began); code == -1 || took > 12*time.Second {
		t.Errorf("the stop ended with %d after %s", code, took)
	}
	m.host.Gone(t)
	m.host.Restart(t)
	m.host.AwaitCopied(t)
	m.host.Verify(t, "local", "mirror")
	compareTheirs(t, m.client, m.model)
	live.Check()
}

func TestACopyOfAnotherBackendsFileIsRefusedUntilItIsGone(t *testing.T) {
	t.Parallel()
	m := startMirrored(t, "one", "two")
	for _, of := range []string{"one", "local"} {
		m.write("before the copy of "+of, false)
		m.host.AwaitEqual(t)
		m.host.Stop(t)
		place(t, m.host.File("two"), store(t, m.host.File(of)))
		m.host.Restart(t)
		e2e.Await(t, "the status says that two backends are one store", func() error {
			s, err := m.host.Status(m.Context())
			if err != nil {
				return err
			}
			refused := 0
			for _, b := range s.Backends[1:] {
				if b.State == "error" && strings.Contains(b.Detail, "same store") && b.Remedy != "" {
					refused++
				}
			}
			if refused != 1 || !s.Ready {
				return fmt.Errorf("%d backends are refused, ready %v: %+v", refused, s.Ready, s.Backends)
			}
			return nil
		})
		e2e.Compare(t, m.client, m.model)
		m.host.Stop(t)
		place(t, m.host.File("two"), nil)
		m.host.Restart(t)
		m.host.AwaitEqual(t)
		m.host.Verify(t, "local", "one")
		m.host.Verify(t, "local", "two")
	}
	m.equal("one", "two")
}
