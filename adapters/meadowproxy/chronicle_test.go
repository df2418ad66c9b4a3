package meadowproxy

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"holdfast/ports"
)

// chronicle is a host with a history that it copies to a databeacon, as the core does: from where the store says that it is, and again
// from there when something fails.
type chronicle struct {
	*alone
	send   func(c *chronicle, rows []ports.Row, to *ports.Position) error
	wrote  []string       // the key of each write; the first one has the Seq 1
	stored ports.Position // what the store said, or was told, last
	known  uint64         // the Seq that the host has copied to
}

func newChronicle(t *testing.T, send func(c *chronicle, rows []ports.Row, to *ports.Position) error) *chronicle {
	t.Helper()
	return &chronicle{alone: newAlone(t), send: send}
}

// writes makes a new item, and changes the one before it and one that is there from the beginning.
func (c *chronicle) writes() {
	n := len(c.wrote)
	c.wrote = append(c.wrote, fmt.Sprint("item ", n+1), "one")
	if n > 0 {
		c.wrote = append(c.wrote, c.wrote[n-2])
	} else {
		c.wrote = append(c.wrote, "two")
	}
}

// since gives the last states of what was written after a Seq.
func (c *chronicle) since(seq uint64) (rows []ports.Row) {
	for i := int(seq); i < len(c.wrote); i++ {
		if !slices.Contains(c.wrote[i+1:], c.wrote[i]) {
			rows = append(rows, item(c.wrote[i], uint64(i+1)))
		}
	}
	return rows
}

var errEnded = errors.New("the session has ended")

// looks asks the store where it is, as is done beside each session: it ends one that another store stands before.
func (c *chronicle) looks() error {
	p, err := c.Position(c.within(), ports.Queue)
	if err == nil && (p.StoreID != c.stored.StoreID || !p.Covers(c.stored)) {
		return errEnded
	}
	return nil
}

func (c *chronicle) puts(rows []ports.Row, to *ports.Position) error {
	after := c.stored
	_, err := c.Put(c.within(), ports.Batch{Family: ports.Queue, Rows: rows, After: &after, Position: to})
	if err == nil && to != nil {
		c.stored, c.known = *to, to.Seqs["host"]
	}
	return err
}

// Ways in which a batch goes to the store. As in the core, nothing follows a Put that failed.
var sendings = map[string]func(c *chronicle, rows []ports.Row, to *ports.Position) error{
	"in one Put": func(c *chronicle, rows []ports.Row, to *ports.Position) error { return c.puts(rows, to) },
	"in three Puts": func(c *chronicle, rows []ports.Row, to *ports.Position) error {
		return inOrder(
			func() error { return c.puts(rows[:1], nil) },
			func() error { return c.puts(rows[1:], nil) },
			func() error { return c.puts(nil, to) })
	},
	"in three Puts, and looked at": func(c *chronicle, rows []ports.Row, to *ports.Position) error {
		return inOrder(
			func() error { return c.puts(rows[:1], nil) },
			c.looks,
			func() error { return c.puts(rows[1:], nil) },
			c.looks,
			func() error { return c.puts(nil, to) })
	},
}

func inOrder(steps ...func() error) error {
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// session copies what the store lacks, as far as it says.
func (c *chronicle) session() error {
	p, err := c.Position(c.within(), ports.Queue)
	if err != nil {
		return err
	}
	c.stored, c.known = p, min(c.known, p.Seqs["host"])
	return c.batch()
}

func (c *chronicle) batch() error {
	to := ports.Position{StoreID: c.stored.StoreID, Epoch: "epoch", Seqs: map[string]uint64{"host": uint64(len(c.wrote))}}
	if rows := c.since(c.known); len(rows) > 0 {
		return c.send(c, rows, &to)
	}
	return nil
}

// catchesUp copies until a probe is good and nothing is left.
func (c *chronicle) catchesUp() {
	c.t.Helper()
	c.eventually("everything is copied", func() bool {
		return c.Probe(c.within(), ports.Queue) == nil && c.session() == nil && c.Probe(c.within(), ports.Queue) == nil && c.known == uint64(len(c.wrote))
	})
}

// has compares the database with what was written.
func (c *chronicle) has(when string) {
	c.t.Helper()
	there := map[string]uint64{}
	rows, err := c.db.Database(1).QueryContext(c.t.Context(), `SELECT WorkItemHash, ChangeSeq FROM UVQueueWorkItem WHERE Deleted = 0`)
	if err != nil {
		c.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var key string
		var seq uint64
		if err := rows.Scan(&key, &seq); err != nil {
			c.t.Fatal(err)
		}
		there[key] = seq
	}
	if err := rows.Err(); err != nil {
		c.t.Fatal(err)
	}
	for _, want := range c.since(0) {
		if is := there[want.Key]; is != want.Change.Seq {
			c.t.Errorf("%s: %q is there as of %d and not of %d", when, want.Key, is, want.Change.Seq)
		}
	}
}

// copied makes a copy of the database.
func (c *chronicle) copied() string {
	c.t.Helper()
	file := filepath.Join(c.t.TempDir(), "copy.sqlite")
	if err := c.db.Copy(1, file); err != nil {
		c.t.Fatal(err)
	}
	return file
}

// replace puts a copy in the place of the database.
func (c *chronicle) replace(file string) {
	if err := c.db.Replace(1, file); err != nil {
		c.t.Error(err)
	}
}

// before has something done before each request, one after the other and counted from now on, until it is ended.
func (c *chronicle) before(each func(request int)) (end func() (requests int)) {
	var mu sync.Mutex
	n, ended := 0, false
	c.db.Fault(func(_, _ string, _ json.RawMessage) (string, bool) {
		mu.Lock()
		defer mu.Unlock()
		if n++; !ended {
			each(n)
		}
		return "", false
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		c.db.Fault(nil)
		ended = true
		return n
	}
}
