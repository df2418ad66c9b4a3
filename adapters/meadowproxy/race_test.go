package meadowproxy

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// Others write at the same moment, and the way breaks.

func TestTwoWritersOfTheSameRowsLeaveOneOfEach(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		one, two := b.w, b.way()
		const keys, rounds = 12, 6
		last := map[string]map[string]bool{} // the states that may be the last, by record
		for round := range rounds {
			var batches [2][]ports.Row
			for i := range keys {
				for _, kind := range ports.Kinds {
					for writer := range batches {
						r := b.row(kind, fmt.Sprint("Key-", i), 1, fmt.Sprintf(`%q:"round %d of %d"`, word[kind], round, writer))
						r.Change.Host = fmt.Sprint("host-", writer)
						r.First = ports.First{OrderKey: fmt.Sprint("order-", i), EnqueuedKey: r.First.EnqueuedKey, Actor: fmt.Sprint("writer-", writer)}
						batches[writer] = append(batches[writer], r)
						record := fmt.Sprint(kind, i)
						if writer == 0 {
							last[record] = map[string]bool{}
						}
						last[record][said(r)] = true
					}
				}
			}
			var both sync.WaitGroup
			for writer, w := range []*way{one, two} {
				both.Go(func() {
					if done, err := w.put(t.Context(), batches[writer], ports.ClassLive); err != nil || done != len(batches[writer]) {
						t.Errorf("round %d: writer %d: done %d, %v", round, writer, done, err)
					}
				})
			}
			both.Wait()
			one.forget()
		}
		for i := range keys {
			for _, kind := range ports.Kinds {
				r := b.row(kind, fmt.Sprint("Key-", i), 1, "")
				got, err := b.read(t.Context(), r)
				if err != nil || got == nil || !last[fmt.Sprint(kind, i)][said(*got)] {
					t.Errorf("%s %q is none of the last states (%v)", kind, r.Key, err)
				}
			}
		}
		for _, table := range ports.Tables {
			if n := b.count(`SELECT count(*) FROM ` + table.Name); n != keys {
				t.Errorf("%s has %d rows, want %d", table.Name, n, keys)
			}
		}
	})
}

// said is the word that tells one state of a record from another.
func said(r ports.Row) string {
	record, err := ports.ParseRecord(ports.TableOf(r.Kind), r.Body)
	if err != nil {
		return err.Error()
	}
	return record.Text(word[r.Kind])
}

// meddling is a mesh in which something happens before a request.
type meddling struct {
	ports.Mesh
	before func(method, path string) error
	after  func(method, path string) error
}

func (m *meddling) Dispatch(ctx context.Context, w ports.Work) (ports.WorkAnswer, error) {
	var s struct{ Method, Path string }
	_ = json.Unmarshal(w.Settings, &s) // what is no request has neither
	if m.before != nil {
		if err := m.before(s.Method, s.Path); err != nil {
			return ports.WorkAnswer{}, err
		}
	}
	answer, err := m.Mesh.Dispatch(ctx, w)
	if m.after != nil && err == nil {
		err = m.after(s.Method, s.Path)
	}
	return answer, err
}

// meddle makes a way on which something happens.
func (b *behind) meddle(m *meddling) *way {
	w := b.way()
	m.Mesh = w.mesh
	w.mesh = m
	return w
}

func TestALaterStateThatCameInBetweenStays(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		early := b.row(ports.KindItem, "key", 1, `"Status":"Running"`)
		late := b.row(ports.KindItem, "key", 1, `"Status":"Complete"`)
		var once sync.Once
		w := b.meddle(&meddling{before: func(method, _ string) error {
			if method == "POST" { // it has seen that nothing is there
				once.Do(func() { b.put(late) })
			}
			return nil
		}})
		b.putBy(w, early)
		b.has("after the earlier one came late", late)
	})
}

func TestARowThatIsRemovedBetweenLookUpAndPutIsBroughtBack(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		first := b.row(ports.KindManifest, "key", 1, `"Status":"Running"`)
		b.put(first)
		var once sync.Once
		w := b.meddle(&meddling{before: func(method, _ string) error {
			if method == "PUT" {
				once.Do(func() { b.put(ports.Row{Kind: first.Kind, Key: first.Key, Gone: true}) })
			}
			return nil
		}})
		second := b.row(ports.KindManifest, "key", 1, `"Status":"Complete"`)
		b.putBy(w, second)
		b.has("after it was put", second)
	})
}

func TestARowThatSomebodyElseBringsBackIsWrittenAllTheSame(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		first, theirs := b.row(ports.KindItem, "key", 1, `"Status":"Running"`), b.row(ports.KindItem, "key", 1, `"Status":"Complete"`)
		b.put(first)
		b.put(ports.Row{Kind: first.Kind, Key: first.Key, Gone: true})
		var once sync.Once
		w := b.meddle(&meddling{before: func(_, path string) error {
			if strings.Contains(path, "/Undelete/") {
				once.Do(func() { b.put(theirs) })
			}
			return nil
		}})
		ours := b.row(ports.KindItem, "key", 1, `"Status":"Canceled"`)
		b.putBy(w, ours)
		b.has("after both", ours)
	})
}

func TestAnAnswerThatIsLostIsAnUnknownOutcomeAndNoRefusal(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		var broken atomic.Bool
		broken.Store(true)
		w := b.meddle(&meddling{after: func(method, _ string) error {
			if method == "POST" && broken.Load() {
				return ports.Errorf(ports.BackendGone, "mesh", "the connection broke")
			}
			return nil
		}})
		var rows []ports.Row
		for i := range 5 {
			rows = append(rows, b.row(ports.KindItem, fmt.Sprint("key-", i), 1, `"Status":"Running"`))
		}
		done, err := w.put(t.Context(), rows, ports.ClassLive)
		if done != 0 || ports.CodeOf(err) != ports.Deadline {
			t.Errorf("done %d, %v; want an unknown outcome", done, err)
		}
		broken.Store(false)
		b.putBy(w, rows...)
		b.has("after it was put again", rows...)
		if n := b.count(`SELECT count(*) FROM UVQueueWorkItem`); n != len(rows) {
			t.Errorf("%d rows, want %d", n, len(rows))
		}
	})
}

func TestARowThatTheDatabaseRefusesStopsNoOther(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.Postgres})
	b.w.columns["UVQueueWorkItem"]["AssignedBeaconID"] = column{"character varying", 500} // it is less
	var rows []ports.Row
	for i := range 7 {
		rows = append(rows, b.row(ports.KindItem, fmt.Sprint("key-", i), 1, `"Status":"Running"`))
	}
	rows[3] = b.row(ports.KindItem, "key-3", 1, fmt.Sprintf(`"AssignedBeaconID":%q`, strings.Repeat("b", 400)))
	done, err := b.w.put(t.Context(), rows, ports.ClassLive)
	if done != 3 || ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("done %d, %v", done, err)
	}
	b.lacks("the refused one", rows[3])
	b.has("the others", append(rows[:3:3], rows[4:]...)...)
}

func TestWhatStandsBehindARefusedRowOfItsKeyWaits(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.Postgres})
	b.w.columns["UVQueueWorkItem"]["AssignedBeaconID"] = column{"character varying", 500} // it is less
	item := b.row(ports.KindItem, "key", 1, fmt.Sprintf(`"AssignedBeaconID":%q`, strings.Repeat("b", 400)))
	event, other := b.row(ports.KindEvent, "key", 1, ""), b.row(ports.KindEvent, "other", 1, "")
	if done, err := b.w.put(t.Context(), []ports.Row{item, event, other}, ports.ClassLive); done != 0 || ports.CodeOf(err) != ports.TooLarge {
		t.Errorf("done %d, %v", done, err)
	}
	b.lacks("behind the refused item", event)
	b.has("of another key", other)
}

func TestADatabeaconThatForgotIsToldAsSuch(t *testing.T) {
	t.Parallel()
	for name, forget := range map[string]func(b *behind) error{
		"its endpoints": func(b *behind) error {
			_, err := b.w.act(b.t.Context(), ports.ClassProbe, managementCapability, "DisableEndpoint", map[string]any{"IDBeaconConnection": b.id, "TableName": "UVQueueWorkItem"})
			b.d.Restart()
			return err
		},
		"its allow list": func(b *behind) error {
			b.w.bases["UVQueueWorkItem"] = "/1.0/UVQueueWorkItem"
			return nil
		},
		"its tables": func(b *behind) error {
			_, err := b.d.Database(b.id).Exec(`DROP TABLE UVQueueWorkItem`)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBehind(t, stock.Options{})
			r := b.row(ports.KindItem, "key", 1, `"Status":"Running"`)
			b.put(r)
			if err := forget(b); err != nil {
				t.Fatal(err)
			}
			is := func(what string, err error) {
				t.Helper()
				if e := ports.AsError(err); e == nil || e.Code != ports.Unavailable || e.Field != ports.FieldBootstrap {
					t.Errorf("%s: %v", what, err)
				}
			}
			_, err := b.w.put(t.Context(), []ports.Row{r}, ports.ClassLive) // its identity is known
			is("put", err)
			_, err = b.w.put(t.Context(), []ports.Row{b.row(ports.KindItem, "new", 1, ""), b.row(ports.KindItem, "newer", 1, "")}, ports.ClassLive)
			is("bulk", err)
			_, err = b.w.item(t.Context(), "key")
			is("item", err)
			_, err = b.w.items(t.Context(), ports.ItemQuery{})
			is("items", err)
		})
	}
}

func TestRowsAreWrittenInTheNameOfTheirActor(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{})
	before := b.d.Users()
	var rows []ports.Row
	for i, actor := range []string{"ann", "ben", "ann", "", "ben", "J\u00f6rg\n"} {
		r := b.row(ports.KindItem, fmt.Sprint("key-", i), 1, "")
		r.First.Actor = actor
		rows = append(rows, r)
	}
	b.put(rows...)
	after := b.d.Users()
	for _, user := range []string{"ann", "ben", systemUser, "J?rg?"} {
		if after[user] <= before[user] {
			t.Errorf("nothing was written in the name of %q: %v", user, after)
		}
	}
	b.has("with their actors", rows...)
}
