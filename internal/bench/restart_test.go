package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"holdfast/internal/e2e"
)

// From the death of the local store's plugin to the first write that is decided again. Only the first death of a plugin that was
// well is followed at once, so each is that of a host of its own.

const deaths = 50

func restarts(b *testing.B) {
	var m measured
	for range deaths {
		host := e2e.Start(b)
		l := newLoad(host.URL)
		if _, err := isDecided(l, "before"); err != nil {
			b.Fatal(err)
		}
		killed := time.Now()
		if host.KillPlugins() != 1 {
			b.Fatal("there is not one plugin")
		}
		for {
			done, err := isDecided(l, "after")
			if err != nil {
				b.Fatal(err)
			}
			if done {
				break
			}
		}
		m.times = append(m.times, time.Since(killed))
		stop(b, host, l)
	}
	m.rate = 1 / m.percentile(0.5).Seconds()
	table.measured(partPlugin, fmt.Sprintf("death of the local store to a write decided, %d", deaths), m).target(target{What: "p99", Most: 1000})
	table.add(partPlugin, "load of the machine, by all that runs", "", loadAverage())
}

// isDecided makes a write and says whether the local store decided it.
func isDecided(l *load, hash string) (bool, error) {
	var body bytes.Buffer
	line := fmt.Appendf(nil, `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":%q}}}`, hash)
	if err := l.do("POST", "/v1/actions", "application/json", line, &body); err != nil {
		return false, err
	}
	var a struct {
		Success, Deferred bool
		Reason            string
	}
	if err := json.Unmarshal(body.Bytes(), &a); err != nil {
		return false, err
	}
	if !a.Success {
		return false, errors.New(a.Reason)
	}
	return !a.Deferred, nil
}
