package beacon

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"

	"holdfast/ports"
)

// ownMember is the one member that is added to a record at a beacon. A caller's record that has one of this name is refused.
const ownMember = "HoldfastRow"

// imprint is what ownMember holds: with it a reader knows whether the beacon gives back what was put.
type imprint struct {
	Sum         string   // over the members that were put, byte for byte
	Has         string   // which columns were put: a bit for each, in the order of the table, as hexadecimal digits
	More        []string `json:",omitempty"` // which other members
	ReceivedAt  string   `json:",omitempty"`
	OrderKey    string   `json:",omitempty"`
	EnqueuedKey string   `json:",omitempty"`
	EmittedAt   string   `json:",omitempty"`
	Actor       string   `json:",omitempty"`
	Origin      string   `json:",omitempty"`
	ChangeHost  string   `json:",omitempty"`
	ChangeSeq   uint64   `json:",omitempty"`
}

// imprintOf describes a record as it is put.
func imprintOf(row *ports.Row, r *ports.Record) imprint {
	i := imprint{
		Sum: sumOf(r), ReceivedAt: row.First.ReceivedAt, OrderKey: row.First.OrderKey, EnqueuedKey: row.First.EnqueuedKey,
		EmittedAt: row.First.EmittedAt, Actor: row.First.Actor, Origin: row.First.Origin, ChangeHost: row.Change.Host, ChangeSeq: row.Change.Seq,
	}
	var has uint64
	for at, value := range r.Cols {
		if value != nil {
			has |= 1 << at
		}
	}
	i.Has = strconv.FormatUint(has, 16)
	for _, m := range r.Extra {
		i.More = append(i.More, m.Name)
	}
	return i
}

// sumOf is a sum over a record's members, in whatever order they stand.
func sumOf(r *ports.Record) string {
	extra := slices.Clone(r.Extra)
	slices.SortFunc(extra, func(a, b ports.Member) int { return cmp.Compare(a.Name, b.Name) })
	h := sha256.New()
	add := func(name string, value []byte) {
		var size [8]byte
		for _, part := range [][]byte{[]byte(name), value} {
			for i := range size {
				size[i] = byte(len(part) >> (8 * i))
			}
			h.Write(size[:])
			h.Write(part)
		}
	}
	for at, value := range r.Cols {
		if value != nil {
			add(r.Table.Members[at].Name, value)
		}
	}
	for _, m := range extra {
		add(m.Name, m.Value)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// marked gives the text of a record that carries its imprint.
func marked(r *ports.Record, i imprint) ([]byte, error) {
	text, err := json.Marshal(i)
	if err != nil {
		return nil, ports.Wrap(ports.Internal, "beacon", err)
	}
	whole := r.Clone()
	whole.Set(ownMember, text)
	return whole.JSON(), nil
}

// readImprint gives the imprint of a record that a beacon gave; ok is false for one that never had it, or has lost it.
func readImprint(r *ports.Record) (i imprint, ok bool) {
	raw := r.Get(ownMember)
	return i, raw != nil && json.Unmarshal(raw, &i) == nil && i.Sum != ""
}

// restore gives the row that was put, out of what the beacon gives back. It fails with Unimplemented when that is not the
// record any more: without its imprint, with members lost, or with values written in another way.
func restore(kind ports.Kind, key string, text []byte) (ports.Row, error) {
	t := ports.TableOf(kind)
	given, err := ports.ParseRecord(t, text)
	if err != nil {
		return ports.Row{}, notKept(kind, "it is no record")
	}
	i, ok := readImprint(given)
	has, err := strconv.ParseUint(i.Has, 16, 64)
	if !ok || err != nil {
		return ports.Row{}, notKept(kind, "it does not carry "+ownMember)
	}
	r := ports.NewRecord(t)
	for at := range t.Members {
		if has&(1<<at) != 0 {
			r.Cols[at] = given.Cols[at]
		}
	}
	for _, name := range i.More {
		if value := given.Get(name); value != nil {
			r.Extra = append(r.Extra, ports.Member{Name: name, Value: value})
		}
	}
	if sumOf(r) != i.Sum {
		return ports.Row{}, notKept(kind, "it has other members or other spellings")
	}
	row := ports.Row{
		Kind: kind, Key: key, Body: r.JSON(), Change: ports.Change{Host: i.ChangeHost, Seq: i.ChangeSeq},
		First: ports.First{
			ReceivedAt: i.ReceivedAt, OrderKey: i.OrderKey, EnqueuedKey: i.EnqueuedKey, EmittedAt: i.EmittedAt, Actor: i.Actor, Origin: i.Origin,
		},
	}
	if named := r.Text(t.Key); named != "" && named != key {
		return ports.Row{}, notKept(kind, "it is another one")
	}
	if kind == ports.KindEvent {
		row.GUID = given.Text("EventGUID")
	}
	return row, nil
}

// notKept says that a read has to go elsewhere.
func notKept(kind ports.Kind, why string) error {
	return ports.Errorf(ports.Unimplemented, "beacon", "the beacon did not keep the %s as it was put: %s", kind, why)
}
