package core

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// Whatever is assigned, and whatever becomes of the databases behind it: reads are right all the time, and in the end the assigned
// database has everything.

// move is one thing that happens, and how long it lasts until the next.
type move struct {
	what  string
	after time.Duration
}

func genMoves(t *rapid.T) []move {
	whats := []string{"assign 1", "assign 2", "assign 3", "assign 1", "clear", "wipe", "older", "again", "kill", "away", "back", "prepares", "write", "write", "write"}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
		return move{rapid.SampledFrom(whats).Draw(t, "what"), time.Duration(rapid.IntRange(0, 5000).Draw(t, "ms")) * time.Millisecond}
	}), 3, 25).Draw(t, "moves")
}

// playMoves gives what went wrong.
func playMoves(t *testing.T, moves []move) (wrong []string) {
	playWith(t, withKeeper(nil), func(t *testing.T, s *stage) {
		disks, backup := map[int64]*mirrorDisk{}, map[int64]*mirrorDisk{}
		m, now := s.mirror("m1"), int64(0)
		bind := func(err error) { // as the plugin does when it hears of it
			m.change(func(m *mirror) {
				if m.probe = err; now == 0 {
					m.probe = errNobody
				} else {
					m.replace(disks[now])
				}
			})
		}
		assign := func(connection int64) {
			if disks[connection] == nil {
				disks[connection] = newMirrorDisk(fmt.Sprint("disk-", connection))
			}
			if err := s.host.Assign(nil, "databeacon", connection); err != nil {
				t.Fatal(err)
			}
			now = connection
			bind(nil)
		}
		for i, move := range moves {
			var connection int64
			switch _, _ = fmt.Sscanf(move.what, "assign %d", &connection); {
			case connection > 0:
				assign(connection)
			case move.what == "clear":
				if err := s.host.Unassign(nil); err != nil {
					t.Fatal(err)
				}
				now = 0
				bind(nil)
			case move.what == "wipe" && now > 0:
				backup[now] = m.look()
				disks[now] = newMirrorDisk(fmt.Sprint("disk-", now, "-", i))
				bind(nil)
			case move.what == "older" && backup[now] != nil:
				disks[now] = backup[now].copied()
				bind(nil)
			case move.what == "again":
				s.again()
			case move.what == "kill":
				m.kill(nil)
			case move.what == "away":
				m.change(func(m *mirror) { m.probe = errBusy })
			case move.what == "back":
				bind(nil)
			case move.what == "prepares":
				bind(errMakes)
			default:
				s.does(upsert("hot", fmt.Sprint("Running", i)), Done)
				s.many(10, fmt.Sprint("w", i, "-"))
			}
			for end := time.Duration(0); end <= move.after; end += 300 * time.Millisecond {
				if held, _ := s.store.look().Item("hot"); held != nil {
					if a, want := s.host.Item(t.Context(), "hot"), string(held.Record.JSON()); string(a.Value) != want || a.Stale {
						wrong = append(wrong, fmt.Sprintf("%d, %s: an item is answered %s by %s, want %s", i, move.what, a.AppendJSON(nil), a.Backend, want))
					}
				}
				list := s.host.Items(t.Context(), ports.ItemQuery{Limit: 500})
				if got, want := bytes.Count(list.Value, []byte(`"WorkItemHash"`)), len(s.store.look().rows(ports.KindItem)); got != want || list.Stale {
					wrong = append(wrong, fmt.Sprintf("%d, %s: a list of %s has %d items, want %d", i, move.what, list.Backend, got, want))
				}
				if state := s.assignment(ports.Queue).State; now == 0 && end > 2*time.Second && state != "unassigned" {
					wrong = append(wrong, fmt.Sprintf("%d, %s: nothing is assigned, and it is %s", i, move.what, state))
				}
				s.in(300 * time.Millisecond)
			}
		}
		assign(1)
		bind(nil)
		s.in(70 * time.Second) // what is in doubt has settled
		s.catchesUp("m1", 70*time.Second)
		wrong = append(wrong, s.differences("m1")...)
		if state := s.assignment(ports.Queue).State; state != "bootstrapped" {
			wrong = append(wrong, "in the end it is "+state)
		}
	})
	return wrong
}

func TestWhateverIsAssignedReadsAreRightAndTheEndIsEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		moves := genMoves(r)
		if wrong := playMoves(t, moves); len(wrong) > 0 {
			r.Fatalf("%v\n%s", moves, wrong[:min(5, len(wrong))])
		}
	})
}
