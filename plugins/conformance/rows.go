package conformance

import (
	"bytes"
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"holdfast/ports"
)

// The rows that cases put, and how they are read back and compared.

const (
	anyHost  = "0b5d7c1e-4a6f-4f3b-9d2c-8e1a7f60c3b2" // a HostID
	thatHost = "6f1e2d3c-5b4a-4788-9a0b-1c2d3e4f5a6b" // another one
	begunMs  = 1796004734800                          // when the first row was received
)

// opaque is the member of each kind that is kept byte for byte because nobody looks into it, and word the column whose
// text tells one state of a record from another.
var (
	opaque = map[ports.Kind]string{ports.KindItem: "Settings", ports.KindEvent: "Payload", ports.KindAttempt: "Detail", ports.KindManifest: "Output"}
	word   = map[ports.Kind]string{ports.KindItem: "Status", ports.KindEvent: "EventType", ports.KindAttempt: "Outcome", ports.KindManifest: "Status"}
)

// guid gives the EventGUID of the n-th event of a key; no other event has it, and those of a key are in order.
func guid(key string, n int) string {
	h := fnv.New32a()
	h.Write([]byte(key))
	return fmt.Sprintf("%08x-0000-4000-8000-%012x", h.Sum32(), n)
}

// row makes the state of a record: of an event or attempt the n-th of its key (from 1 on), of an item or manifest the only
// one. members are those beside the ones that name it, as JSON: `"Status":"Running","Priority":3`.
func (c *C) row(kind ports.Kind, key string, n int, members string) ports.Row {
	c.seq++
	r := ports.Row{Kind: kind, Key: key, Change: ports.Change{Host: anyHost, Seq: c.seq}}
	entry := ports.Entry{Seq: c.seq, ReceivedMs: begunMs + int64(c.seq), Host: anyHost[:8]}
	r.First = ports.First{ReceivedAt: entry.ReceivedAt(), OrderKey: entry.OrderKey(), Actor: "ops", Origin: ports.OriginHTTP}
	quoted := string(ports.AppendQuoted(nil, key))
	switch kind {
	case ports.KindItem:
		r.First.EnqueuedKey, _ = ports.TimeKey(entry.ReceivedAt())
		r.Body = object(`"WorkItemHash":`+quoted, members)
	case ports.KindEvent:
		r.GUID, r.First.EmittedAt = guid(key, n), entry.ReceivedAt()
		if strings.Contains(members, `"EmittedAt"`) {
			r.First.EmittedAt = ""
		}
		r.Body = object(fmt.Sprintf(`"EventGUID":%q,"WorkItemHash":%s`, r.GUID, quoted), members)
	case ports.KindAttempt:
		r.Number = int64(n)
		r.Body = object(fmt.Sprintf(`"WorkItemHash":%s,"AttemptNumber":%d`, quoted, n), members)
	case ports.KindManifest:
		r.Body = object(`"Hash":`+quoted, members)
	}
	return r
}

func object(name, members string) []byte {
	if members != "" {
		name += ","
	}
	return []byte("{" + name + members + "}")
}

// said makes a row whose state is told by one word.
func (c *C) said(kind ports.Kind, key string, n int, text string) ports.Row {
	return c.row(kind, key, n, fmt.Sprintf(`%q:%s`, word[kind], ports.AppendQuoted(nil, text)))
}

// gone makes the removal of a row's record.
func (c *C) gone(r ports.Row) ports.Row {
	c.seq++
	return ports.Row{Kind: r.Kind, Key: r.Key, GUID: r.GUID, Number: r.Number, Gone: true, Change: ports.Change{Host: anyHost, Seq: c.seq}}
}

// kinds lists the kinds that can be put and read.
func (c *C) kinds() []ports.Kind { return readable(c.declared) }

// puttable lists the kinds that can be put.
func (c *C) puttable() (kinds []ports.Kind) {
	for _, k := range ports.Kinds {
		if slices.Contains(c.declared.Families, k.Family()) {
			kinds = append(kinds, k)
		}
	}
	return kinds
}

// family gives a family that the backend keeps, one that can be read if there is one.
func (c *C) family() ports.Family {
	if kinds := c.kinds(); len(kinds) > 0 {
		return kinds[0].Family()
	}
	return c.declared.Families[0]
}

// put puts rows, one batch for each family, and ends the case where that fails.
func (c *C) put(rows ...ports.Row) { c.putInto(c.Backend(), rows...) }

func (c *C) putInto(b ports.Backend, rows ...ports.Row) {
	for _, f := range ports.Families {
		var own []ports.Row
		for _, r := range rows {
			if r.Kind.Family() == f {
				own = append(own, r)
			}
		}
		if len(own) > 0 {
			c.putBatch(b, ports.Batch{Family: f, Rows: own})
		}
	}
}

func (c *C) putBatch(b ports.Backend, batch ports.Batch) {
	applied, err := b.Put(c.Ctx, batch)
	if err != nil {
		c.Fatalf("put of %d rows: %s (Done %d)", len(batch.Rows), faultText(err), applied.Done)
	}
	if applied.Done != len(batch.Rows) {
		c.Fatalf("put of %d rows: Done is %d without an error", len(batch.Rows), applied.Done)
	}
}

// find reads the record of a row.
func (c *C) find(b ports.Backend, r ports.Row) (got ports.Row, found bool, err error) {
	return c.findWithin(c.Ctx, b, r)
}

func (c *C) findWithin(ctx context.Context, b ports.Backend, r ports.Row) (got ports.Row, found bool, err error) {
	switch r.Kind {
	case ports.KindItem:
		got, err = powerOf[ports.ItemReader](c, b).Item(ctx, r.Key)
	case ports.KindManifest:
		got, err = powerOf[ports.ManifestReader](c, b).Manifest(ctx, r.Key)
	default:
		rows, err := walk(c, 500, c.listWithin(ctx, b, r.Kind, r.Key))
		at := slices.IndexFunc(rows, func(other ports.Row) bool { return other.GUID == r.GUID && other.Number == r.Number })
		if at < 0 {
			return ports.Row{}, false, err
		}
		return rows[at], true, err
	}
	if ports.CodeOf(err) == ports.NotFound {
		return ports.Row{}, false, nil
	}
	return got, err == nil, err
}

// listOf pages through the events or attempts of a key, with their bodies.
func (c *C) listOf(b ports.Backend, kind ports.Kind, key string) pages {
	return c.listWithin(c.Ctx, b, kind, key)
}

func (c *C) listWithin(ctx context.Context, b ports.Backend, kind ports.Kind, key string) pages {
	if kind == ports.KindEvent {
		reader := powerOf[ports.EventReader](c, b)
		return func(after *ports.Cursor, limit int) (ports.Page, error) {
			return reader.Events(ctx, ports.EventQuery{Key: key, After: after, Limit: limit, Bodies: true})
		}
	}
	reader := powerOf[ports.AttemptReader](c, b)
	return func(after *ports.Cursor, limit int) (ports.Page, error) {
		return reader.Attempts(ctx, ports.AttemptQuery{Key: key, After: after, Limit: limit})
	}
}

// holds asks for each row whether the backend has exactly it.
func (c *C) holds(when string, rows ...ports.Row) { c.holdsIn(c.Backend(), when, rows...) }

func (c *C) holdsIn(b ports.Backend, when string, rows ...ports.Row) {
	for _, want := range rows {
		switch got, found, err := c.find(b, want); {
		case err != nil:
			c.Errorf("%s: %s: %s", when, nameOf(want), faultText(err))
		case !found:
			c.Errorf("%s: %s is not there", when, nameOf(want))
		default:
			for _, d := range differences(want, got) {
				c.Errorf("%s: %s: %s", when, nameOf(want), d)
			}
		}
	}
}

// lacks asks for each row whether its record is not there.
func (c *C) lacks(when string, rows ...ports.Row) {
	for _, r := range rows {
		switch got, found, err := c.find(c.Backend(), r); {
		case err != nil:
			c.Errorf("%s: %s: %s", when, nameOf(r), faultText(err))
		case found:
			c.Errorf("%s: %s is there: %s", when, nameOf(r), text(got.Body))
		}
	}
}

func nameOf(r ports.Row) string {
	key := r.Key
	if len(key) > 60 {
		key = cut([]byte(key), 60)
	}
	switch r.Kind {
	case ports.KindEvent:
		return fmt.Sprintf("the event %s of %q", r.GUID, key)
	case ports.KindAttempt:
		return fmt.Sprintf("the attempt %d of %q", r.Number, key)
	case ports.KindManifest:
		return fmt.Sprintf("the manifest %q", key)
	}
	return fmt.Sprintf("the work item %q", key)
}

// differences compares a record with what was put, member by member: the order of members and the white space between them
// are a store's own business, the bytes of their values are not.
func differences(want, got ports.Row) (list []string) {
	if got.Kind != want.Kind || got.Key != want.Key || got.GUID != want.GUID || got.Number != want.Number || got.Gone {
		return []string{fmt.Sprintf("it came back as %s", text(ports.Row{Kind: got.Kind, Key: got.Key, GUID: got.GUID, Number: got.Number, Gone: got.Gone}))}
	}
	if bytes.Equal(want.Body, got.Body) {
		return nil
	}
	a, b := members(want.Body), members(got.Body)
	if b == nil {
		return []string{"it came back with a body that is no JSON object: " + text(got.Body)}
	}
	for _, m := range a {
		switch value := value(b, m.Name); {
		case value == nil:
			list = append(list, fmt.Sprintf("%s is missing, it was put as %s", m.Name, text(m.Value)))
		case !bytes.Equal(value, m.Value):
			list = append(list, fmt.Sprintf("%s is %s, it was put as %s", m.Name, text(value), text(m.Value)))
		}
	}
	for _, m := range b {
		if value(a, m.Name) == nil {
			list = append(list, fmt.Sprintf("%s is %s, it was not put", m.Name, text(m.Value)))
		}
	}
	return list
}

// members takes a body apart; nil for one that is no object.
func members(body []byte) []ports.Member {
	list := []ports.Member{}
	err := ports.ScanObject(body, ports.MaxDepth, func(name, value []byte) error {
		plain, _ := ports.Unquote(name)
		list = append(list, ports.Member{Name: plain, Value: value})
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}

func value(list []ports.Member, name string) []byte {
	for _, m := range list {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}
