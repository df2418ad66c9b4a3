package core

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"holdfast/ports"
)

// When two rows are equal: their readers give the same members, byte for byte, and the same stamps of the first write. Who
// changed a row last is not compared.

// recordID tells the records of one key apart.
type recordID struct {
	kind   ports.Kind
	guid   string
	number int64
}

func idOf(row *ports.Row) recordID {
	id := recordID{kind: row.Kind}
	switch row.Kind {
	case ports.KindEvent:
		id.guid = row.GUID
	case ports.KindAttempt:
		id.number = row.Number
	}
	return id
}

func (id recordID) compare(other recordID) int {
	return cmp.Or(
		cmp.Compare(slices.Index(ports.Kinds, id.kind), slices.Index(ports.Kinds, other.kind)),
		cmp.Compare(id.guid, other.guid), cmp.Compare(id.number, other.number))
}

// imprint stands for a record's content: of its members, and of what its first write fixed.
type imprint struct {
	body  [16]byte
	first [16]byte
}

// sheet is what a backend has of one key, as imprints, so that keys with large records need no room.
type sheet map[recordID]sheetRow

type sheetRow struct {
	imprint
	change ports.Change
	ended  string // the key of the time at which an item or a manifest ended; "" for one that did not
}

func (s sheet) add(row *ports.Row) {
	r, err := recordOf(row)
	s[idOf(row)] = sheetRow{imprintAs(row, r, err), row.Change, endOf(row.Kind, r)}
}

// ended is when the record that the others of a key belong to ended; "" when it did not, or is not there.
func (s sheet) ended(f ports.Family) string {
	if f == ports.Manifest {
		return s[recordID{kind: ports.KindManifest}].ended
	}
	return s[recordID{kind: ports.KindItem}].ended
}

// endOf is when a record ended, as retention counts it.
func endOf(k ports.Kind, r *ports.Record) string {
	switch {
	case r == nil:
	case k == ports.KindItem && slices.Contains(ports.TerminalItems, r.Text("Status")):
		return ports.FinishedKey(r, "LastEventAt", "CompletedAt", "EnqueuedAt")
	case k == ports.KindManifest && slices.Contains(ports.TerminalManifests, r.Text("Status")):
		return ports.FinishedKey(r, "StopTime", "StartTime")
	}
	return ""
}

func imprintOf(row *ports.Row) imprint {
	r, err := recordOf(row)
	return imprintAs(row, r, err)
}

// imprintAs is the imprint of a row whose record was read.
func imprintAs(row *ports.Row, r *ports.Record, err error) (p imprint) {
	h := sha256.New()
	first := row.First
	switch {
	case err != nil || row.Kind == ports.KindManifest:
		h.Write(bytes.TrimSpace(row.Body))
	default:
		for at, value := range r.Cols {
			if value != nil {
				hashPart(h, r.Table.Members[at].Name, value)
			}
		}
		extra := slices.Clone(r.Extra)
		slices.SortFunc(extra, func(a, b ports.Member) int { return cmp.Compare(a.Name, b.Name) })
		for _, m := range extra {
			hashPart(h, m.Name, m.Value)
		}
	}
	copy(p.body[:], h.Sum(nil))
	h.Reset()
	for _, stamp := range stampsOf(row.Kind, r, first) {
		hashPart(h, stamp.Name, stamp.Value)
	}
	copy(p.first[:], h.Sum(nil))
	return p
}

func hashPart(h hash.Hash, name string, value []byte) {
	var b [2 * binary.MaxVarintLen64]byte
	n := binary.AppendUvarint(binary.AppendUvarint(b[:0], uint64(len(name))), uint64(len(value)))
	h.Write(n)
	h.Write([]byte(name))
	h.Write(value)
}

// recordOf takes a row's body apart; an event has its GUID in it, whether the backend shows it there or not.
func recordOf(row *ports.Row) (*ports.Record, error) {
	r, err := ports.ParseRecord(ports.TableOf(row.Kind), row.Body)
	if err == nil && row.Kind == ports.KindEvent && r.Get("EventGUID") == nil {
		r.Set("EventGUID", ports.AppendQuoted(nil, row.GUID))
	}
	return r, err
}

// stampsOf are the stamps that count for a kind.
func stampsOf(k ports.Kind, r *ports.Record, f ports.First) []ports.Member {
	if k != ports.KindItem {
		f.EnqueuedKey = ""
	}
	if k != ports.KindEvent || r != nil && r.Get("EmittedAt") != nil {
		f.EmittedAt = ""
	}
	return []ports.Member{
		{Name: "OrderKey", Value: []byte(f.OrderKey)}, {Name: "ReceivedAt", Value: []byte(f.ReceivedAt)},
		{Name: "EnqueuedKey", Value: []byte(f.EnqueuedKey)}, {Name: "EmittedAt", Value: []byte(f.EmittedAt)},
		{Name: "Actor", Value: []byte(f.Actor)}, {Name: "Origin", Value: []byte(f.Origin)},
	}
}

// wholeText is what a manifest is kept in; it is named where only its spelling differs.
const wholeText = "ManifestJSON"

// differing names the members in which two rows of one record differ, and the stamps.
func differing(a, b *ports.Row) (names []string) {
	one, errA := recordOf(a)
	two, errB := recordOf(b)
	if errA != nil || errB != nil {
		return []string{wholeText}
	}
	for at, column := range one.Table.Members {
		if (one.Cols[at] == nil) != (two.Cols[at] == nil) || !bytes.Equal(one.Cols[at], two.Cols[at]) {
			names = append(names, column.Name)
		}
	}
	var extra []string
	for _, m := range slices.Concat(one.Extra, two.Extra) {
		if !bytes.Equal(one.Get(m.Name), two.Get(m.Name)) && !slices.Contains(extra, m.Name) {
			extra = append(extra, m.Name)
		}
	}
	slices.Sort(extra)
	names = append(names, extra...)
	if len(names) == 0 && a.Kind == ports.KindManifest && !bytes.Equal(bytes.TrimSpace(a.Body), bytes.TrimSpace(b.Body)) {
		names = append(names, wholeText)
	}
	theirs := stampsOf(b.Kind, two, b.First)
	for i, stamp := range stampsOf(a.Kind, one, a.First) {
		if !bytes.Equal(stamp.Value, theirs[i].Value) && !slices.Contains(names, stamp.Name) {
			names = append(names, stamp.Name)
		}
	}
	return names
}
