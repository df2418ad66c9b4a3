package beacon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast/adapters/mesh/stock"
	"holdfast/ports"
)

func TestWhatABeaconMustHaveOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	v, p, dir := newVillage(), stock.NewPersistence(), t.TempDir()
	v.join("archive", p)
	first := over(t, v, dir, "")
	before := moved(t, first, ports.Queue, 5, item("w", 1, `,"Status":"Running"`))
	killed := over(t, v, dir, "") // the first one did not close
	if got := at(t, killed, ports.Queue); !same(got, before) {
		t.Errorf("after a kill it is at %v, want %v", got, before)
	}
	p.Wipe()
	if got := at(t, over(t, v, dir, ""), ports.Queue); got.StoreID == before.StoreID {
		t.Errorf("a beacon that came back empty is at %v", got)
	}
}

func TestADamagedLedgerIsSetAsideAndEverythingIsCopiedAgain(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(text []byte) []byte{
		"cut":     func(text []byte) []byte { return text[:len(text)/2] },
		"empty":   func([]byte) []byte { return nil },
		"flipped": func(text []byte) []byte { text[len(text)/2] ^= 1; return text },
		"zeros":   func(text []byte) []byte { clear(text); return text },
		"null":    func([]byte) []byte { return []byte("null") },
		"long":    func(text []byte) []byte { return append(text, make([]byte, maxLedger)...) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, dir := newVillage(), t.TempDir()
			v.join("archive", stock.NewPersistence())
			b := over(t, v, dir, "")
			before := moved(t, b, ports.Queue, 5, item("w", 1, ""))
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "beacon-beacon.json")
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, damage(text), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := at(t, over(t, v, dir, ""), ports.Queue); got.StoreID == before.StoreID || !isZero(got) {
				t.Errorf("it is at %v, want a new generation", got)
			}
			if _, err := os.Stat(path + ".corrupt"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestAnOlderLedgerIsAnOlderPosition(t *testing.T) {
	t.Parallel()
	v, dir := newVillage(), t.TempDir()
	v.join("archive", stock.NewPersistence())
	b := over(t, v, dir, "")
	before := moved(t, b, ports.Queue, 1, item("a", 1, `,"Status":"Pending"`))
	path := filepath.Join(dir, "beacon-beacon.json")
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	moved(t, b, ports.Queue, 2, item("a", 2, `,"Status":"Running"`)) // a later state of the same host is no older one
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, old, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := at(t, over(t, v, dir, ""), ports.Queue); !same(got, before) {
		t.Errorf("it is at %v, want %v", got, before)
	}
}

func TestALedgerIsBounded(t *testing.T) {
	t.Parallel()
	v, dir := newVillage(), t.TempDir()
	v.join("archive", stock.NewPersistence())
	b := over(t, v, dir, "")
	long := string(slices.Repeat([]rune("😀"), ports.MaxKeyPoints-4))
	for i := range 100 {
		key := fmt.Sprint(long, i)
		rows := []ports.Row{item(key, 1, `,"Status":"x"`)}
		for n := range 12 {
			rows = append(rows, event(key, fmt.Sprint("event ", n), ""))
		}
		moved(t, b, ports.Queue, uint64(i+1), rows...)
		moved(t, b, ports.Manifest, uint64(i+1), manifest(key, ""))
	}
	info, err := os.Stat(filepath.Join(dir, "beacon-beacon.json"))
	if err != nil || info.Size() > maxLedger/2 {
		t.Errorf("the ledger has %d bytes (%v)", info.Size(), err)
	}
}
