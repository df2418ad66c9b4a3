package journal

import (
	"bytes"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"holdfast/ports"
)

func anyEntry() *rapid.Generator[ports.Entry] {
	return rapid.Custom(func(r *rapid.T) ports.Entry {
		e := ports.Entry{
			Seq:        rapid.Uint64Range(1, math.MaxUint64-1).Draw(r, "seq"),
			Action:     rapid.OneOf(rapid.SampledFrom(ports.Writes), rapid.Map(rapid.String(), func(s string) ports.Action { return ports.Action(s) })).Draw(r, "action"),
			Class:      rapid.SampledFrom([]ports.Class{ports.Live, ports.Reflush, "", "other"}).Draw(r, "class"),
			Key:        rapid.String().Draw(r, "key"),
			Number:     rapid.Int64().Draw(r, "number"),
			ReceivedMs: rapid.Int64().Draw(r, "received"),
			Host:       rapid.String().Draw(r, "host"),
			Actor:      rapid.String().Draw(r, "actor"),
			Origin:     rapid.OneOf(rapid.SampledFrom(origins), rapid.String()).Draw(r, "origin"),
			EventGUID:  rapid.String().Draw(r, "guid"),
			GUIDGiven:  rapid.Bool().Draw(r, "given"),
			Again:      rapid.Uint64().Draw(r, "again"),
		}
		if rapid.Bool().Draw(r, "of a hub") {
			e.Stamp = ports.Stamp{Ms: rapid.Int64().Draw(r, "stamp ms"), Count: rapid.Uint64().Draw(r, "stamp count")}
		}
		if rapid.Bool().Draw(r, "has record") {
			e.Record = append([]byte{}, rapid.SliceOf(rapid.Byte()).Draw(r, "record")...)
		}
		return e
	})
}

func TestAnyEntrySurvivesItsBinaryForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		var d decoder // shared, as in a walk: what it remembers must not leak from one entry into the next
		for range 3 {
			want := anyEntry().Draw(r, "entry")
			b := appendEntry(nil, &want, true)
			if len(b) > envelopeBound(&want)+len(want.Record) {
				r.Fatalf("%d bytes, the bound is %d", len(b), envelopeBound(&want)+len(want.Record))
			}
			got := ports.Entry{Seq: want.Seq}
			n, err := d.entry(&got, append(b, "behind"...), true)
			if err != nil || n != len(want.Record) || string(d.rest) != "behind" {
				r.Fatalf("%v, record of %d bytes, %q left", err, n, d.rest)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				r.Fatal(diff)
			}
		}
	})
}

func TestABinaryFormThatIsCutOrOfAnotherVersionIsRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		e := anyEntry().Draw(r, "entry")
		b := appendEntry(nil, &e, true)
		var d decoder
		if _, err := d.entry(&ports.Entry{}, b[:rapid.IntRange(0, len(b)-1).Draw(r, "cut")], true); err == nil {
			r.Fatal("a part was taken for the whole")
		}
		b[0] = stampedVersion + 1
		if _, err := d.entry(&ports.Entry{}, b, true); err == nil {
			r.Fatal("an unknown version was read")
		}
	})
}

// A journal lives longer than the holdfast that wrote it.
func TestAnEntryOfTheVersionBeforeIsReadAndStillWrittenSo(t *testing.T) {
	t.Parallel()
	before := []byte("\x01\f\x03\x01\x02\x90\xff\xc3\xa3\xc5h\a\x01w\b11111111\x03ops\x01g\x14{\"WorkItemHash\":\"w\"}")
	want := ports.Entry{
		Seq: 9, Action: ports.AppendEvent, Class: ports.Live, Key: "w", Number: 1, Record: []byte(`{"WorkItemHash":"w"}`),
		ReceivedMs: 1796004675528, Host: "11111111", Actor: "ops", Origin: ports.OriginHTTP, EventGUID: "g", GUIDGiven: true, Again: 7,
	}
	var d decoder
	got := ports.Entry{Seq: 9}
	if _, err := d.entry(&got, before, true); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if now := appendEntry(nil, &want, true); !bytes.Equal(now, before) {
		t.Errorf("it is written as %q, was %q", now, before)
	}
}

func TestTheSizeOfFramesIsKnownBeforeTheyAreWritten(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 700, partBytes, partBytes + 1, 3*partBytes - 1, 3 * partBytes, 9<<20 + 5} {
		e := sized("key", n)
		e.Seq = 1 << 40
		var b []byte
		if isLarge(&e) {
			err := largeFrames(&e, func(piece []byte) error { b = append(b, piece...); return nil })
			if err != nil || int64(len(b)) != largeSize(&e) {
				t.Errorf("%d: %d bytes, foretold %d, %v", n, len(b), largeSize(&e), err)
			}
		} else {
			b = appendFrame(nil, &e)
		}
		if int64(len(b)) > frameBound(&e) {
			t.Errorf("%d: %d bytes, the bound is %d", n, len(b), frameBound(&e))
		}
		src := newSource(bytes.NewReader(b), int64(len(b)))
		w := &walk{src: src, next: 1, last: math.MaxUint64}
		var got ports.Entry
		if ok, err := w.step(&got); !ok || err != nil || !bytes.Equal(got.Record, e.Record) || w.off != int64(len(b)) {
			t.Errorf("%d: read back: %v, %v", n, ok, err)
		}
		src.release()
	}
}

func TestGarbageIsNeverTakenForAnEntry(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(r, "garbage")
		for _, at := range rapid.SliceOfN(rapid.IntRange(0, 300), 0, 5).Draw(r, "magic") {
			if at+len(frameMagic) < len(b) {
				copy(b[at:], frameMagic)
			}
		}
		src := newSource(bytes.NewReader(b), int64(len(b)))
		defer src.release()
		w := &walk{src: src, next: 1, last: math.MaxUint64}
		var e ports.Entry
		if ok, err := w.step(&e); ok || err != nil {
			r.Fatalf("%+v, %v", e, err)
		}
	})
}
