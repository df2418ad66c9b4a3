package stock

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCostsAreChargedInOneQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(Options{Name: "db", Dir: t.TempDir(), Costs: true})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}()
		id := connect(t, d, "uv")
		bootstrap(t, d, id)
		items := "/1.0/uv/UVQueueWorkItem"
		rows := func(n int, format string) string {
			var list []string
			for i := range n {
				list = append(list, fmt.Sprintf(format, i+1))
			}
			return "[" + strings.Join(list, ",") + "]"
		}
		keys := strings.TrimSuffix(strings.Repeat("wi,", 100), ",")
		for _, c := range []struct {
			method, path, body string
			least, most        time.Duration
		}{
			{"POST", items, `{"WorkItemHash":"alone"}`, 2200 * time.Microsecond, 2200 * time.Microsecond},
			{"POST", items + "s", rows(100, `{"WorkItemHash":"wi-%d"}`), 75 * time.Millisecond, 90 * time.Millisecond},
			{"POST", items + "s", rows(100, `{"WorkItemHash":"wi-%d"}`), 56 * time.Millisecond, 58 * time.Millisecond},
			{"PUT", items + "s", rows(100, `{"IDUVQueueWorkItem":%d}`), 70 * time.Millisecond, 72 * time.Millisecond},
			{"GET", items + "s/By/WorkItemHash/wi-1", "", 1100 * time.Microsecond, 1100 * time.Microsecond},
			{"GET", items + "s/FilteredTo/FBL~WorkItemHash~INN~" + keys, "", 6300 * time.Microsecond, 6400 * time.Microsecond},
		} {
			began := time.Now()
			if a := call(t, d, c.method, c.path, c.body); a.Status != 200 {
				t.Fatalf("%s: %d %s", c.path, a.Status, a.Body)
			}
			if took := time.Since(began); took < c.least || took > c.most {
				t.Errorf("%s %.60s took %v, want %v to %v", c.method, c.path, took, c.least, c.most)
			}
			<-time.After(time.Second) // idle, so that nothing is made up for
		}
		began := time.Now()
		var all sync.WaitGroup
		for i := range 10 {
			all.Go(func() { call(t, d, "POST", items, fmt.Sprintf(`{"WorkItemHash":"at once %d"}`, i)) })
		}
		all.Wait()
		if took := time.Since(began); took != 22*time.Millisecond {
			t.Errorf("ten at once took %v, want 22ms", took)
		}
	})
}
