package beacon

import (
	"context"
	"strings"

	"holdfast/ports"
)

// manner is how a beacon wants its records. It is learned from what the beacon refuses, in each of its sessions anew.
type manner struct {
	bare    bool // without ownMember: its tables have no place for it, and reads of its records go elsewhere
	noNulls bool // an empty text where a text column is null, and no other nulls: the stock tables take none
}

// after is the manner that a refusal asks for.
func (m manner) after(refusal error) manner {
	e := ports.AsError(refusal)
	if refusal == nil || !e.Code.Permanent() {
		return m
	}
	reason := strings.ToLower(e.Message)
	m.bare = m.bare || strings.Contains(reason, strings.ToLower(ownMember))
	m.noNulls = m.noNulls || strings.Contains(reason, "not null") || strings.Contains(reason, "cannot be null") || strings.Contains(reason, "null value")
	return m
}

// text is a record in that manner.
func (m manner) text(r *ports.Record, own imprint) ([]byte, error) {
	if m.noNulls {
		r = r.Clone()
		for at, value := range r.Cols {
			switch column := &r.Table.Members[at]; {
			case string(value) != "null":
			case column.Type == ports.Text:
				r.Set(column.Name, []byte(`""`))
			default:
				r.Drop(column.Name)
			}
		}
		for _, other := range r.Clone().Extra {
			if string(other.Value) == "null" {
				r.Drop(other.Name)
			}
		}
	}
	if m.bare {
		return r.JSON(), nil
	}
	return marked(r, own)
}

// send has the beacon do a write of one record, in its manner.
func (p *putting) send(ctx context.Context, action, name string, r *ports.Record, own imprint) error {
	for {
		p.mu.Lock()
		m := p.manner
		p.mu.Unlock()
		text, err := m.text(r, own)
		if err != nil {
			return err
		}
		err = p.write(ctx, action, member{name, text})
		next := m.after(err)
		if next == m {
			return err
		}
		p.mu.Lock()
		p.manner = next
		p.mu.Unlock()
	}
}
