package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// A host with a second SQLite backend that follows the local store.

const mirrorName = "mirror"

// onlyLocal and withMirror are configurations over the same data directory. The place stands for the route.
const (
	onlyLocal = `
backend "sqlite" "local" {
  local = true
  path  = "history.db"
}
`
	withMirror = `route = [%s]
` + onlyLocal + `
backend "sqlite" "` + mirrorName + `" {
  path = "mirror.db"
}
`
	mirrorFirst = `"mirror", "local"`
	localAlone  = `"local"`
)

// over starts a host on a data directory that may have history already.
func over(b *testing.B, data, config string) (*e2e.Host, *load) {
	b.Helper()
	host := e2e.StartWith(b, e2e.Setup{Data: data, Config: config})
	return host, newLoad(host.URL)
}

// stop ends a host whose load is over.
func stop(b *testing.B, host *e2e.Host, l *load) {
	b.Helper()
	l.http.CloseIdleConnections()
	host.Stop(b)
}

// mirrorFile is where the mirror keeps its history; forget removes it, so that it is copied from zero.
func mirrorFile(data string) string { return filepath.Join(data, "mirror.db") }

func forget(b *testing.B, data string) {
	b.Helper()
	for _, end := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(mirrorFile(data) + end); err != nil && !errors.Is(err, os.ErrNotExist) {
			b.Fatal(err)
		}
	}
}

// standing is what the host says of its backends.
type standing struct {
	HostID   string
	Backends []struct {
		Name      string
		PID       int
		Followers []following
	}
}

// following is how far the mirror is with one family.
type following struct {
	Family, Phase, Detail    string
	Position, Behind, Copied uint64
}

func (l *load) standing(b *testing.B) (s standing) {
	b.Helper()
	var answer bytes.Buffer
	err := l.do(http.MethodGet, "/v1/status", "", nil, &answer)
	if err == nil {
		err = json.Unmarshal(answer.Bytes(), &s)
	}
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// mirror is how far the mirror is with work items.
func (s *standing) mirror() following {
	for _, backend := range s.Backends {
		for _, f := range backend.Followers {
			if f.Family == "Queue" {
				return f
			}
		}
	}
	return following{}
}

// trio is the processes of a host with a mirror.
type trio struct{ host, local, mirror int }

var trioNames = [3]string{"host", "local plugin", "mirror's plugin"}

func (l *load) trio(b *testing.B) (t trio) {
	b.Helper()
	s := l.standing(b)
	t.host = childOf(os.Getpid(), "holdfast")
	for _, backend := range s.Backends {
		if backend.Name == mirrorName {
			t.mirror = backend.PID
		} else {
			t.local = backend.PID
		}
	}
	if t.host == 0 || t.local == 0 || t.mirror == 0 {
		b.Fatalf("the processes were not found: %+v", t)
	}
	return t
}

func (t trio) busy() [3]time.Duration {
	return [3]time.Duration{processorTime(t.host), processorTime(t.local), processorTime(t.mirror)}
}

// note reports the processor time of each since, by row, and the peaks of memory.
func (t trio) note(name string, since [3]time.Duration, rows uint64) {
	now := t.busy()
	for i, who := range trioNames {
		table.add(partCost, name+", "+who, "us/row", (now[i]-since[i]).Seconds()*1e6/float64(rows))
	}
	for i, limit := range []float64{150, 200, 200} {
		pid := []int{t.host, t.local, t.mirror}[i]
		table.add(partMemory, trioNames[i]+" memory at its peak, "+name, "MiB", float64(memoryOf(pid, "VmHWM"))/1024).target(target{What: "value", Most: limit})
	}
}

// until asks how far the mirror is, at short intervals, until it is far enough.
func (l *load) until(b *testing.B, what string, enough func(following) bool) following {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var f following
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); <-tick.C {
		s := l.standing(b)
		if f = s.mirror(); enough(f) {
			return f
		}
	}
	b.Fatalf("the mirror does not come to %s: %+v", what, f)
	return f
}

// caughtUp waits until the mirror has everything.
func (l *load) caughtUp(b *testing.B) {
	b.Helper()
	l.until(b, "the head", func(f following) bool { return f.Phase == "ready" && f.Behind == 0 })
}

// answeredBy checks who answered a read.
func answeredBy(answer []byte, backend string) error {
	if !bytes.Contains(answer, fmt.Appendf(nil, `"Backend":%q`, backend)) {
		return fmt.Errorf("the answer is not from %s: %.200s", backend, answer)
	}
	return nil
}
