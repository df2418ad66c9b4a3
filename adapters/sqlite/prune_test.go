package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"holdfast/adapters/tables"
	"holdfast/adapters/tables/tabletest"
	"holdfast/ports"
)

func TestAPrunedFileShrinksAndManyEventsGoInShortTransactions(t *testing.T) {
	t.Parallel()
	s := ready(t)
	body := strings.Repeat("x", 2000)
	entries := []ports.Entry{upsert(1, "old", `{"WorkItemHash":"old","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`)}
	for i := range 3 * pruneRows {
		entries = append(entries, event(uint64(i+2), "old", fmt.Sprint("g", i), fmt.Sprintf(`{"WorkItemHash":"old","Payload":%q}`, body)))
	}
	tabletest.Pour(t, s, entries)
	before := s.file.bytes()
	got, err := s.Prune(t.Context(), ports.PruneQuery{Before: time.Now()})
	if err != nil || got.Items != 1 || got.Events != 3*pruneRows || got.More {
		t.Fatalf("%+v, %v", got, err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := s.file.bytes(); after > before/4 {
		t.Errorf("%d bytes before, %d after", before, after)
	}
}

// A record that was written between being found and being removed is young again.
func TestARecordThatComesBackToLifeIsNotPruned(t *testing.T) {
	t.Parallel()
	s := ready(t)
	commit(t, s, upsert(1, "a", `{"WorkItemHash":"a","Status":"Complete","LastEventAt":"2020-01-01T00:00:00Z"}`))
	p := pruning{w: s.work, before: ports.KeyOfTime(time.Now())}
	commit(t, s, patch(2, "a", `{"Status":"Running"}`))
	if err := p.remove(t.Context(), []tables.Victim{{Kind: ports.KindItem, Key: "a"}, {Kind: ports.KindItem, Key: "gone already"}}); err != nil || p.pruned != (ports.Pruned{}) {
		t.Errorf("%+v, %v", p.pruned, err)
	}
	if _, err := s.Item(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
