package sqlite

import (
	"path/filepath"
	"testing"

	"holdfast/ports"
)

func TestABatchForAnotherPlaceIsRefusedWhole(t *testing.T) {
	t.Parallel()
	s := openStore(t, filepath.Join(t.TempDir(), "f.db"))
	at, err := s.Position(t.Context(), ports.Queue)
	if err != nil {
		t.Fatal(err)
	}
	put := func(key string, after, position ports.Position) error {
		_, err := s.Put(t.Context(), ports.Batch{
			Family: ports.Queue, Rows: []ports.Row{{Kind: ports.KindItem, Key: key, Body: []byte(`{"WorkItemHash":"` + key + `"}`)}},
			After: &after, Position: &position,
		})
		return err
	}
	seq := func(n uint64) ports.Position {
		return ports.Position{StoreID: at.StoreID, Epoch: "e", Seqs: map[string]uint64{"h": n}}
	}
	zero := at
	zero.Seqs = map[string]uint64{"h": 0}
	if err := put("a", zero, seq(5)); err != nil {
		t.Fatalf("a Seq of 0 is as good as none: %v", err)
	}
	other := seq(5)
	other.StoreID = "another"
	for name, after := range map[string]ports.Position{"behind": seq(4), "ahead": seq(6), "another store": other, "zero": at} {
		err := put("b-"+name, after, seq(9))
		if ports.CodeOf(err) != ports.Conflict || ports.AsError(err).Field != ports.FieldPosition {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := s.Item(t.Context(), "b-"+name); ports.CodeOf(err) != ports.NotFound {
			t.Errorf("%s: the row is there: %v", name, err)
		}
	}
	if err := put("c", seq(5), seq(7)); err != nil {
		t.Error(err)
	}
	if got, err := s.Position(t.Context(), ports.Queue); err != nil || got.Seqs["h"] != 7 {
		t.Errorf("it is at %v, %v", got, err)
	}
}
