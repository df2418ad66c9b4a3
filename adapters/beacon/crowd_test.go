package beacon

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// Callers who write and read the same few keys, and what they were told. Each write carries a mark of its own, so that it is
// known again wherever it comes to stand.

// crowd is all callers of a host.
type crowd struct {
	t    testing.TB
	host *core.Host
	dice *dice

	mu      sync.Mutex
	marks   int
	written []written
	looks   []look
	longest time.Duration
	floors  map[string]uint64 // by record: the highest Seq of a write that was acknowledged
}

// written is a write that was answered.
type written struct {
	record string // which record it makes so, as recordOf names it
	writer int
	mark   string // "" for a removal
	seq    uint64
}

// look is a read that was answered as fresh.
type look struct {
	record string
	mark   string // "" when there was nothing
	floor  uint64 // what had been acknowledged before it began
	by     string
}

func recordOf(kind ports.Kind, key string, number int) string {
	if kind == ports.KindAttempt {
		return fmt.Sprintf("%s %s %d", kind, key, number)
	}
	return fmt.Sprintf("%s %s", kind, key)
}

func newCrowd(t testing.TB, host *core.Host, d *dice) *crowd {
	return &crowd{t: t, host: host, dice: d, floors: map[string]uint64{}}
}

// come lets so many writers and two readers be there until done; quiet ones leave a beacon alone for seconds.
func (c *crowd) come(ctx context.Context, writers int, quiet bool) *sync.WaitGroup {
	all, most := &sync.WaitGroup{}, 500*time.Millisecond
	if quiet {
		most *= 20
	}
	for n := range writers {
		all.Go(func() {
			for ctx.Err() == nil {
				c.write(n)
				pause(ctx, c.dice.between(20*time.Millisecond, most))
			}
		})
	}
	for range 2 {
		all.Go(func() {
			for ctx.Err() == nil {
				c.read()
				pause(ctx, c.dice.between(20*time.Millisecond, 2*most))
			}
		})
	}
	return all
}

func (c *crowd) mark() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.marks++
	return fmt.Sprint("m", c.marks)
}

func (c *crowd) item() string     { return fmt.Sprint("w", c.dice.n(5)) }
func (c *crowd) manifest() string { return fmt.Sprint("r", c.dice.n(3)) }

// write makes one write, of any kind.
func (c *crowd) write(writer int) {
	mark, key, number := c.mark(), c.item(), 1+c.dice.n(3)
	members := fmt.Sprintf(`"Mark":%q,"By%d":%q`, mark, writer, mark)
	body := fmt.Sprintf(`,"Status":%q,"Settings":{"text":%q}`, []string{"Pending", "Running", "Complete"}[c.dice.n(3)], strings.Repeat("x", c.dice.n(500)))
	var action ports.Action
	var settings, record string
	switch c.dice.n(13) {
	case 0, 1, 2:
		action, record = ports.UpsertWorkItem, recordOf(ports.KindItem, key, 0)
		settings = fmt.Sprintf(`{"WorkItem":{"WorkItemHash":%q,%s%s}}`, key, members, body)
	case 3, 4, 5:
		action, record = ports.UpdateWorkItem, recordOf(ports.KindItem, key, 0)
		settings = fmt.Sprintf(`{"WorkItemHash":%q,"Patch":{%s%s}}`, key, members, body)
	case 6, 7, 8:
		action, record = ports.AppendEvent, recordOf(ports.KindEvent, mark, 0)
		settings = fmt.Sprintf(`{"Event":{"WorkItemHash":%q,"EventType":"happened","Mark":%q}}`, key, mark)
	case 9:
		action, record = ports.UpdateAttemptOutcome, recordOf(ports.KindAttempt, key, number)
		settings = fmt.Sprintf(`{"WorkItemHash":%q,"AttemptNumber":%d,"Patch":{"Outcome":"Complete",%s}}`, key, number, members)
	case 10, 11:
		key = c.manifest()
		action, record = ports.UpsertManifest, recordOf(ports.KindManifest, key, 0)
		settings = fmt.Sprintf(`{"Manifest":{"Hash":%q,%s%s}}`, key, members, body)
	default:
		key, mark = c.manifest(), ""
		action, record = ports.RemoveManifest, recordOf(ports.KindManifest, key, 0)
		settings = fmt.Sprintf(`{"RunHash":%q}`, key)
	}
	began := time.Now()
	a := c.host.Do(context.Background(), core.Call{Action: action, Settings: []byte(settings)})
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, took)
	switch {
	case a.Situation == core.NotFound: // a patch of what is not there yet
	case !a.Success():
		c.t.Errorf("%s is answered %s", settings, a.AppendJSON(nil))
	default:
		c.written = append(c.written, written{record, writer, mark, a.Seq})
		c.floors[record] = max(c.floors[record], a.Seq)
	}
}

// read reads one record.
func (c *crowd) read() {
	ctx := context.Background()
	var record, payload string
	var ask func() core.Answer
	if key := c.item(); c.dice.chance(60) {
		record, payload, ask = recordOf(ports.KindItem, key, 0), "WorkItem", func() core.Answer { return c.host.Item(ctx, key) }
	} else {
		key = c.manifest()
		record, payload, ask = recordOf(ports.KindManifest, key, 0), "Manifest", func() core.Answer { return c.host.Manifest(ctx, key) }
	}
	c.mu.Lock()
	floor := c.floors[record]
	c.mu.Unlock()
	began := time.Now()
	a := ask()
	took := time.Since(began)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.longest = max(c.longest, took)
	if a.Stale || a.Incomplete {
		return
	}
	var answer map[string]struct{ Mark string }
	_ = json.Unmarshal(a.AppendJSON(nil), &answer) // other members are no objects
	switch a.Situation {
	case core.Done, core.NotFound:
		c.looks = append(c.looks, look{record, answer[payload].Mark, floor, a.Backend})
	default:
		c.t.Errorf("%s is answered %s", record, a.AppendJSON(nil))
	}
}

// judge says which reads were not what they had to be.
func (c *crowd) judge() {
	of := map[string][]written{}
	for _, w := range c.written {
		of[w.record] = append(of[w.record], w)
	}
	for _, l := range c.looks {
		ok := l.floor == 0 && l.mark == "" // nothing had been acknowledged
		for _, w := range of[l.record] {
			ok = ok || w.seq >= l.floor && w.mark == l.mark
		}
		if !ok {
			c.t.Errorf("%s was answered by %q with the mark %q, and not as stale; Seq %d had been acknowledged", l.record, l.by, l.mark, l.floor)
		}
	}
}

// lost gives what was acknowledged and is not in a set of records: each writer's last write of a record is there, unless the
// record was removed later.
func (c *crowd) lost(records map[string]members) (list []string) {
	slices.SortFunc(c.written, func(a, b written) int { return int(a.seq) - int(b.seq) })
	last := map[string]map[int]string{}
	for _, w := range c.written {
		if w.mark == "" {
			delete(last, w.record)
			continue
		}
		if last[w.record] == nil {
			last[w.record] = map[int]string{}
		}
		if strings.HasPrefix(w.record, string(ports.KindManifest)) { // replaced whole
			clear(last[w.record])
		}
		last[w.record][w.writer] = w.mark
	}
	for record, marks := range last {
		for writer, mark := range marks {
			name := fmt.Sprint("By", writer)
			if strings.HasPrefix(record, string(ports.KindEvent)) {
				name = "Mark"
			}
			if got := records[record][name]; got != fmt.Sprintf("%q", mark) {
				list = append(list, fmt.Sprintf("%s has %s %s, want %s", record, name, got, mark))
			}
		}
	}
	for _, w := range c.written {
		if w.mark == "" && last[w.record] == nil && records[w.record] != nil {
			list = append(list, w.record+" was removed and is there")
		}
	}
	return list
}

// members are a record, each member as text.
type members map[string]string

func membersOf(t testing.TB, text []byte) members {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	record := members{}
	for name, value := range all {
		switch name {
		case ownMember, "EmittedAt", "EventGUID", "WorkItemHash", "AttemptNumber", "Hash": // what holdfast adds, and keys
		default:
			record[name] = string(value)
		}
	}
	return record
}
