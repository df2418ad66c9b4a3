package core

import "holdfast/ports"

// maxTailBytes bounds the entries of a family that wait in memory; the rest is read back from the journal.
const maxTailBytes = 32 << 20

// tail holds the newest entries of a journal without a gap, from the first that the commit loop has not taken.
type tail struct {
	entries []ports.Entry
	bytes   int64
}

// push adds an entry, unless there is no room or one before it is missing; then the journal alone has it.
func (t *tail) push(e ports.Entry) {
	if n := len(t.entries); n > 0 && t.entries[n-1].Seq+1 != e.Seq {
		return
	}
	if t.bytes > 0 && t.bytes+e.Cost() > maxTailBytes {
		return
	}
	t.entries = append(t.entries, e)
	t.bytes += e.Cost()
}

// take gives entries that follow a Seq, up to a head, within the limits of a batch. known is false when the journal must be
// read instead.
func (t *tail) take(after, head uint64, limit int, maxBytes int64) (taken []ports.Entry, known bool) {
	t.drop(after)
	if len(t.entries) == 0 || t.entries[0].Seq != after+1 {
		return nil, false
	}
	var bytes int64
	n := 0
	for n < len(t.entries) && n < limit && t.entries[n].Seq <= head {
		bytes += t.entries[n].Cost()
		if n > 0 && bytes > maxBytes {
			break
		}
		n++
	}
	return append(make([]ports.Entry, 0, n), t.entries[:n]...), n > 0
}

// drop forgets entries up to a Seq.
func (t *tail) drop(through uint64) {
	n := 0
	for n < len(t.entries) && t.entries[n].Seq <= through {
		t.bytes -= t.entries[n].Cost()
		n++
	}
	clear(t.entries[:n])
	t.entries = t.entries[n:]
	if len(t.entries) == 0 {
		t.entries, t.bytes = nil, 0
	}
}
