package meadowproxy

import (
	"os"
	"sync"
	"testing"
	"time"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// It runs before the others and not beside them: the cases at the limits move records of 64 MiB, in bounded time.
// The manners that plugins/meadowproxy holds to the suite through its process are tried here in the long tests only.
func TestTheContractIsKeptInEveryManner(t *testing.T) {
	for name, o := range manners {
		if !o.Strict && os.Getenv("HOLDFAST_SOAK") == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			places := &places{t: t, options: o, of: map[string]*stock.Mesh{}}
			s := conformance.InProcess(func() ports.Backend { return New(places.mesh) })
			s.Patience, s.Options = time.Minute, []byte(`{"timeout":"1m"}`)
			conformance.Run(t, s)
		})
	}
}

// places have a databeacon for each data directory: what its database keeps outlives the backend.
type places struct {
	t       *testing.T
	options stock.Options
	mu      sync.Mutex
	of      map[string]*stock.Mesh
}

func (p *places) mesh(c ports.Configuration) (ports.Mesh, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if m := p.of[c.DataDir]; m != nil {
		return m, nil
	}
	o := p.options
	o.Name, o.Dir = "db", c.DataDir
	db, err := stock.Open(o)
	if err != nil {
		return nil, err
	}
	connection, err := db.AddConnection("history", "", true)
	if err != nil {
		return nil, err
	}
	m := stock.NewMesh()
	m.Connect(db)
	for _, f := range ports.Families {
		m.Assign(f, "db", connection)
	}
	p.t.Cleanup(func() {
		m.Close()
		_ = db.Close()
	})
	p.of[c.DataDir] = m
	return m, nil
}
