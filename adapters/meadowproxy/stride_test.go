package meadowproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// sluggish takes its time for each row that is written, and does nothing of what nobody waited for.
type sluggish struct {
	*stock.Mesh
	aRow time.Duration
}

func (s sluggish) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	var r struct{ Method, Body string }
	if json.Unmarshal(w.Settings, &r) == nil && r.Method != http.MethodGet {
		pause(ctx, s.aRow*time.Duration(strings.Count(r.Body, "EnqueuedKey")))
	}
	if err := ctx.Err(); err != nil {
		return ports.WorkAnswer{}, ports.Wrap(ports.Deadline, "mesh", err)
	}
	return s.Mesh.Dispatch(ctx, w)
}

func TestADatabeaconThatIsTooSlowForABatchGetsShorterOnes(t *testing.T) {
	t.Parallel()
	a := newAlone(t)
	slow := New(func(ports.Configuration) (ports.Mesh, error) { return sluggish{a.mesh, 25 * time.Millisecond}, nil })
	c := ports.Configuration{Name: "databeacon", DataDir: t.TempDir(), Options: []byte(`{"timeout":"500ms"}`)}
	if err := slow.Configure(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Close() })
	var rows []ports.Row
	for n := range 64 { // which takes three times as long as it may
		rows = append(rows, item(fmt.Sprint("slow ", n), uint64(n+1)))
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for len(rows) > 0 {
		applied, err := slow.Put(ctx, ports.Batch{Family: ports.Queue, Rows: rows})
		if err != nil && ports.CodeOf(err).Permanent() || ctx.Err() != nil {
			t.Fatalf("%d rows are left: %v", len(rows), err)
		}
		rows = rows[applied.Done:]
	}
	if n := count(t, a.db.Database(1), ports.Items.Name); n != 64 {
		t.Errorf("%d items", n)
	}
}

func TestAStrideGrowsAgain(t *testing.T) {
	t.Parallel()
	var s stride
	late := ports.Errorf(ports.Deadline, "mesh", "no answer")
	s.took(100, 4*time.Second, late)
	s.took(25, 4*time.Second, late)
	if got := s.of(100); got != 6 {
		t.Errorf("after two that had no answer: %d", got)
	}
	s.took(6, 2*time.Second, nil)
	if got := s.of(100); got != 6 {
		t.Errorf("after one that was neither slow nor quick: %d", got)
	}
	s.took(6, 3*time.Second, nil)
	if got := s.of(100); got != 3 {
		t.Errorf("after a slow one: %d", got)
	}
	for range 10 {
		s.took(s.of(1000), time.Millisecond, nil)
	}
	if got := s.of(1000); got != 1000 {
		t.Errorf("after quick ones: %d", got)
	}
	for range 20 {
		s.took(s.of(1000), time.Second, late)
	}
	if got := s.of(1000); got != 1 {
		t.Errorf("at the least: %d", got)
	}
}
