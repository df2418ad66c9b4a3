package meadowproxy

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"maps"
	"strconv"

	"holdfast/ports"
)

// How far a family is: a chain of steps. Each has a random token, the token of the one before it, and a position. The last four stand
// in rows that take turns, and the last one that follows another of them says how far the database is. A batch makes two:
//
//	Position.Queue.2   {"Step": "K4..", "After": "XA..", "Position": p}    p was reached
//	Position.Queue.3   {"Step": "7Q..", "After": "K4..", "Position": p}    written before the rows: a batch is under way
//	Position.Queue.4   {"Step": "WZ..", "After": "7Q..", "Position": q}    written after the rows: q is reached
//	Position.Queue     {"Step": "XA..", ...}                               the oldest, which is the next to go
//
// An older copy of the database may take its place at any moment, and nobody is told. What was meant for the one before then comes
// into the copy. A step that does follows nothing there, so it does not count, and those that it did not overwrite still say how far
// the copy is. That holds for a copy that is at the same position as well: it was made before the rows were begun, so it does not have
// the step before them. Between two steps of a batch it is read whether the first one counts, so that no two are written blindly, which
// would follow each other wherever they come.

// mostSteps is how many steps stand in the database. They follow each other three times, and one that does not belong there parts two of
// them at most from those beside it.
const mostSteps = 4

// keysPosition are the rows of a family's steps.
func keysPosition(f ports.Family) (keys [mostSteps]string) {
	keys[0] = "Position." + string(f)
	for i := 1; i < mostSteps; i++ {
		keys[i] = keys[0] + "." + strconv.Itoa(i+1)
	}
	return keys
}

// step is one of them.
type step struct {
	Step     string // its token
	After    string // that of the one before it; "" for the first one, which is at no position
	Position ports.Position
}

// follows says whether a step was made in the database that has the one beside it.
func (s step) follows(beside step) bool { return s.After != "" && s.After == beside.Step }

// last gives the step that says how far the database is, and the turn of the next one. Where none follows another, nobody knows: the
// database is at no position.
func last(steps [mostSteps]step) (counts step, next int) {
	found := 0
	for i, s := range steps {
		if s.follows(steps[(i+mostSteps-1)%mostSteps]) && !steps[(i+1)%mostSteps].follows(s) {
			found++
			counts, next = s, (i+1)%mostSteps
		}
	}
	switch {
	case found == 1:
		return counts, next
	case found == 0 && steps[0].Step != "" && steps[0].After == "":
		return step{Step: steps[0].Step}, 1
	}
	return step{}, 0
}

// steps finds out how far each family is.
func (l *ledger) steps(rows []ownRow) {
	all := map[string]step{}
	for _, row := range rows {
		var s step
		if json.Unmarshal([]byte(row.Value), &s) == nil && s.Position.StoreID == l.storeID {
			all[row.Name] = s
		}
	}
	for _, f := range ports.Families {
		var own [mostSteps]step
		keys := keysPosition(f)
		for i, key := range keys {
			own[i] = all[key]
		}
		s, next := last(own)
		l.last[f], l.turn[f] = s, keys[next]
	}
}

// position gives a family's position.
func (l *ledger) position(f ports.Family) ports.Position {
	p := l.last[f].Position
	p.StoreID, p.Seqs = l.storeID, maps.Clone(p.Seqs)
	return p
}

// next makes the step behind the last one.
func (l *ledger) next(f ports.Family, p ports.Position) step {
	p.StoreID = l.storeID
	return step{Step: rand.Text(), After: l.last[f].Step, Position: p}
}

// take writes the next step.
func (w *way) take(ctx context.Context, class ports.WorkClass, l *ledger, f ports.Family, s step) error {
	text, err := json.Marshal(s)
	if err != nil {
		return ports.Wrap(ports.Internal, "meadowproxy: ledger", err)
	}
	return w.write(ctx, class, l.rows[l.turn[f]], l.turn[f], string(text))
}
