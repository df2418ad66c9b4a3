package beacon

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

// What is seen of a run at the beacon: each state that its store had, and who waited for it.

// witness sees what a beacon's store does, and which works were asked for and are given up.
type witness struct {
	ports.Mesh
	store *stock.Persistence

	mu      sync.Mutex
	open    map[string]int       // works that somebody waits for, by their settings
	asked   map[string]time.Time // since when
	doing   string               // the settings of the work that the store does
	states  map[string][]state
	waited  int                  // writes of which somebody heard
	events  map[string]time.Time // when each was done first
	doubles int                  // events that were sent again though they were there
	strays  int                  // what works did that nobody waited for any more, behind what came after them
}

// state is one that a record had at the beacon.
type state struct {
	mark  string // "" for none
	stray bool   // nobody waited any more for the work that made it so
}

func newWitness(m ports.Mesh, store *stock.Persistence) *witness {
	w := &witness{Mesh: m, store: store, open: map[string]int{}, asked: map[string]time.Time{}, states: map[string][]state{}, events: map[string]time.Time{}}
	store.Watch(w.see)
	return w
}

// Dispatch notes for which works somebody waits.
func (w *witness) Dispatch(ctx context.Context, work ports.Work) (ports.WorkAnswer, error) {
	settings := work.Action + string(work.Settings)
	note := func(n int) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if n > 0 {
			w.asked[settings] = time.Now()
		}
		if w.open[settings] += n; w.open[settings] == 0 {
			delete(w.open, settings)
		}
	}
	note(1)
	defer note(-1)
	return w.Mesh.Dispatch(ctx, work)
}

// actions are the store's, each seen.
func (w *witness) actions() []stock.Action {
	var one sync.Mutex
	actions := w.store.Actions()
	for i := range actions {
		do, name := actions[i].Do, actions[i].Name
		actions[i].Do = func(ctx context.Context, work *stock.Work) (any, error) {
			one.Lock()
			defer one.Unlock()
			settings, _, added := strings.Cut(string(work.Settings), `,"QueueMetadata":`) // by the hub
			if w.doing = name + settings; added {
				w.doing += "}"
			}
			return do(ctx, work)
		}
	}
	return actions
}

// see notes a write of the store.
func (w *witness) see(s stock.Write) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var record struct {
		Mark          string
		AttemptNumber int
	}
	if s.Record != nil && json.Unmarshal(s.Record, &record) != nil {
		return
	}
	kind, key := ports.KindItem, s.Key
	switch {
	case strings.HasPrefix(s.Action, "MS_"):
		kind = ports.KindManifest
	case strings.Contains(s.Action, "Attempt"):
		kind = ports.KindAttempt
	case s.Action == "QP_AppendEvent":
		kind, key = ports.KindEvent, record.Mark
	}
	name, stray := recordOf(kind, key, record.AttemptNumber), w.open[w.doing] == 0
	if !stray {
		w.waited++
	}
	if first, known := w.events[key]; kind == ports.KindEvent && !known {
		w.events[key] = time.Now()
	} else if kind == ports.KindEvent && !stray && first.Before(w.asked[w.doing]) {
		w.doubles++
	} else if kind == ports.KindEvent {
		w.strays++
	}
	w.states[name] = append(w.states[name], state{record.Mark, stray})
}

// back gives the records that went back to an older state. A work that nobody waits for any more may do that, of a process that hung
// while another one of its name did what came after it: nobody can help it, and the key is in doubt.
func (w *witness) back(all []written) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	seqs := map[string]uint64{}
	for _, one := range all {
		seqs[one.mark] = one.seq
	}
	for record, states := range w.states {
		least, gone := uint64(0), false
		for _, s := range states {
			if s.mark == "" {
				gone = true
				continue
			}
			seq := seqs[s.mark]
			if seq < least || gone && seq == least && least > 0 {
				if s.stray {
					w.strays++
					continue
				}
				list = append(list, fmt.Sprintf("%s went back from Seq %d to %d", record, least, seq))
			}
			least, gone = max(least, seq), false
		}
	}
	return list
}

// holds are all records that the beacon's store has, by name.
func (w *witness) holds(t testing.TB) map[string]members {
	all, held := map[string]members{}, w.store.Holds()
	for key, text := range held.Items {
		all[recordOf(ports.KindItem, key, 0)] = membersOf(t, text)
	}
	for key, text := range held.Manifests {
		all[recordOf(ports.KindManifest, key, 0)] = membersOf(t, text)
	}
	for _, list := range held.Events {
		for _, text := range list {
			record := membersOf(t, text)
			mark, _ := strconv.Unquote(record["Mark"])
			all[recordOf(ports.KindEvent, mark, 0)] = record
		}
	}
	for key, list := range held.Attempts {
		for _, text := range list {
			var one struct{ AttemptNumber int }
			_ = json.Unmarshal(text, &one)
			all[recordOf(ports.KindAttempt, key, one.AttemptNumber)] = membersOf(t, text)
		}
	}
	return all
}

// localRecords are all records that the local store has, by name.
func localRecords(t testing.TB, store ports.LocalStore) map[string]members {
	t.Helper()
	all := map[string]members{}
	for _, f := range ports.Families {
		for after, end := (ports.Position{}), false; !end; {
			page, err := store.Changes(t.Context(), ports.ChangesQuery{Family: f, After: after})
			if err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Rows {
				if row.Gone {
					continue
				}
				key, record := row.Key, membersOf(t, row.Body)
				if row.Kind == ports.KindEvent {
					key, _ = strconv.Unquote(record["Mark"])
				}
				all[recordOf(row.Kind, key, int(row.Number))] = record
			}
			after, end = page.Through, page.End != nil
		}
	}
	return all
}
