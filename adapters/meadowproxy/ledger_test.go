package meadowproxy

import (
	"fmt"
	"path/filepath"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func at(seq uint64) ports.Position {
	return ports.Position{Epoch: "e", Seqs: map[string]uint64{"h": seq}}
}

func TestAPositionThatComesIntoAnOlderCopyDoesNotCountThere(t *testing.T) {
	t.Parallel()
	for copied := range 4 { // how many positions the older copy has
		for since := 1; since <= 4; since++ { // and how many more the database, when the copy takes its place
			h := newTheatre(t, stock.Options{Dir: t.TempDir(), Name: "db"})
			b := h.mustFit(h.at)
			now := func() ledger {
				t.Helper()
				l, err := b.way.ledger(t.Context(), ports.ClassProbe)
				if err != nil {
					t.Fatal(err)
				}
				return l
			}
			moves := func(l ledger, seq int) {
				t.Helper()
				if err := b.way.move(t.Context(), ports.ClassLive, &l, ports.Queue, at(uint64(seq))); err != nil {
					t.Fatal(err)
				}
			}
			for seq := range copied {
				moves(now(), seq+1)
			}
			older := filepath.Join(t.TempDir(), "older.sqlite")
			if _, err := h.db.Database(1).Exec(fmt.Sprintf(`VACUUM INTO '%s'`, older)); err != nil {
				t.Fatal(err)
			}
			for seq := range since {
				moves(now(), copied+seq+1)
			}
			l := now()
			if is := l.position(ports.Queue).Seqs["h"]; is != uint64(copied+since) {
				t.Errorf("%d and %d: the database is at %d", copied, since, is)
			}
			if err := h.db.Replace(1, older); err != nil {
				t.Fatal(err)
			}
			err := b.way.move(t.Context(), ports.ClassLive, &l, ports.Queue, at(100)) // it was meant for the other one
			is := now()
			if got := is.position(ports.Queue).Seqs["h"]; got > uint64(copied) {
				t.Errorf("%d and %d: the older copy says that it is at %d (%v)", copied, since, got, err)
			}
			moves(is, 50)
			is = now()
			if got := is.position(ports.Queue).Seqs["h"]; got != 50 {
				t.Errorf("%d and %d: the older copy goes on at %d", copied, since, got)
			}
		}
	}
}
