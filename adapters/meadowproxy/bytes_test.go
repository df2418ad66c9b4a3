package meadowproxy

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// Bytes in, bytes out, whatever the engine.

// oddValues are spellings that a column writes otherwise, or cannot hold.
var oddValues = []string{
	`null`, `""`, `" "`, `"x "`, `0`, `-0`, `1.0`, `1.10`, `0.125`, `0.75`, `1e3`, `1e400`, `2147483647`, `2147483648`, `-2147483649`, `9007199254740993`, `18446744073709551615`,
	`123456789.5`, `true`, `false`, `{}`, `[]`, `{"a": [1,  2],"a":3}`, `"caf\u00e9 \/ \ud83d\ude00"`, `"a\u0000b"`, `"\ud800"`, `"漢字 😀"`, `"\t\n\""`, "\"\ufffd\"", `"$raw"`,
	`{"$parts":{"Result":["x",1]}}`, `"{\"$ours\":1}"`,
}

var oddNames = []string{"Unknown", "$raw", "$absent", "$ours", "$parts", "$$x", "$", "Extra", "Deleted", "ManifestJSON", "IDUVQueueWorkItem", "", "é", "status", "Live"}

// members draws the members of a record, beside those that name it.
func members(t *rapid.T, kind ports.Kind) string {
	var list []string
	used := map[string]bool{"WorkItemHash": true, "Hash": true, "EventGUID": true, "AttemptNumber": true}
	add := func(name, value string) {
		if !used[name] {
			list = append(list, string(ports.AppendQuoted(nil, name))+":"+value)
		}
		used[name] = true
	}
	value := rapid.OneOf(
		rapid.SampledFrom(oddValues),
		rapid.Custom(func(t *rapid.T) string {
			return string(ports.AppendQuoted(nil, strings.Repeat(rapid.SampledFrom([]string{"a", "é", "漢", "😀", " ", "~", "\n"}).Draw(t, "sign"), rapid.IntRange(0, 600).Draw(t, "times"))))
		}),
		rapid.Custom(func(t *rapid.T) string {
			return string(ports.AppendQuoted(nil, strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", "")))
		}),
	)
	table := ports.TableOf(kind)
	for range rapid.IntRange(0, 12).Draw(t, "columns") {
		add(rapid.SampledFrom(table.Members).Draw(t, "column").Name, value.Draw(t, "value"))
	}
	for range rapid.IntRange(0, 4).Draw(t, "others") {
		add(rapid.SampledFrom(oddNames).Draw(t, "name"), value.Draw(t, "value"))
	}
	return strings.Join(list, ",")
}

func TestRandomRowsComeBackByteForByte(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		rapid.Check(t, func(rt *rapid.T) {
			var rows []ports.Row
			for i := range rapid.IntRange(1, 6).Draw(rt, "rows") {
				kind := rapid.SampledFrom(ports.Kinds).Draw(rt, "kind")
				r := b.row(kind, fmt.Sprint("key-", i), i+1, members(rt, kind))
				if kind == ports.KindEvent && strings.Contains(string(r.Body), `"EmittedAt":`) {
					r.First.EmittedAt = ""
				}
				r.First.Actor = rapid.SampledFrom([]string{"", "ops", "é 😀", "x\ny", strings.Repeat("a", 300)}).Draw(rt, "actor")
				rows = append(rows, r)
			}
			b.put(rows...)
			b.has("at once", rows...)
			b.w.forget()
			b.put(rows...)
			b.has("again", rows...)
			if t.Failed() {
				rt.FailNow()
			}
		})
	})
}

// large is a text of some bytes, with signs that take several.
func large(n int) string { return strings.Repeat("漢字 é text ", n/20+1) }

func TestATextThatIsTooLargeForItsColumnComesBackWhole(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		var rows []ports.Row
		for i, members := range []string{
			`"Status":"Complete","Result":{"StdOut":%q},"Settings":{"a":1}`,
			`"Status":"Error","LastError":%q`,
			`"Status":"Complete","Other":%q`,
			`"Status":"Complete","Result":null,"Capability":%q`,
		} {
			rows = append(rows, b.row(ports.KindItem, fmt.Sprint("large-", i), 1, fmt.Sprintf(members, large(150_000))))
		}
		rows = append(rows,
			b.row(ports.KindEvent, "large", 1, fmt.Sprintf(`"Payload":[%q]`, large(70_000))), b.row(ports.KindAttempt, "large", 1, fmt.Sprintf(`"Error":%q`, large(70_000))),
			b.row(ports.KindManifest, "large", 1, fmt.Sprintf(`"Status":"Complete","Output":{"x": %q}`, large(400_000))))
		b.put(rows...)
		b.has("at first", rows...)
		b.put(rows...)
		b.has("when it was repeated", rows...)
		mysql := b.w.engine == engineMySQL
		there := func() int {
			return b.count(`SELECT count(*) FROM UVHoldfast WHERE ` + own.Key + ` LIKE 'text/%' AND Deleted = 0`)
		}
		if n := there(); n > 0 != mysql {
			t.Errorf("%d parts are there", n)
		}
		for i := range rows {
			next := b.row(rows[i].Kind, rows[i].Key, 1, `"Status":"Running"`)
			next.First = rows[i].First
			rows[i] = next
		}
		b.put(rows...)
		b.has("after it was replaced by a small one", rows...)
		if n := there(); n != 0 {
			t.Errorf("%d parts are left", n)
		}
	})
}

func TestALargeTextThatWasBrokenOffGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.MySQL})
	r := b.row(ports.KindItem, "large", 1, fmt.Sprintf(`"Result":{"StdOut":%q}`, large(6_000_000)))
	var posts atomic.Int32
	w := b.meddle(&meddling{before: func(method, path string) error {
		if method == "POST" && strings.Contains(path, "UVHoldfasts") && posts.Add(1) == 3 {
			return ports.Errorf(ports.Unavailable, "mesh", "the beacon left")
		}
		return nil
	}})
	if done, err := w.put(t.Context(), []ports.Row{r}, ports.ClassLive); done != 0 || ports.CodeOf(err) != ports.Unavailable {
		t.Fatalf("done %d, %v", done, err)
	}
	before := posts.Load()
	b.lacks("after it was broken off", r)
	b.putBy(w, r)
	b.has("after it was put again", r)
	if all := int32(b.count(`SELECT count(*) FROM UVHoldfast WHERE ` + own.Key + ` LIKE 'text/%'`)); posts.Load()-before > (all+partsWritten-1)/partsWritten-2 {
		t.Errorf("%d more requests wrote %d parts, of which 2 requests had written theirs", posts.Load()-before, all)
	}
}

func TestPartsThatAreLostAreTold(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.MySQL})
	r := b.row(ports.KindItem, "large", 1, fmt.Sprintf(`"Result":{"StdOut":%q}`, large(150_000)))
	b.put(r)
	if _, err := b.d.Database(b.id).Exec(`UPDATE UVHoldfast SET Deleted = 1 WHERE ` + own.Key + ` LIKE 'text/%/1'`); err != nil {
		t.Fatal(err)
	}
	if _, err := b.w.item(t.Context(), "large"); ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("a record whose text has lost a part reads as %v", err)
	}
	b.w.forget()
	b.put(r)
	b.has("after it was put again", r)
}

func TestWhatNoEngineCanKeepIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		good := b.row(ports.KindAttempt, "key", 1, `"Outcome":"Complete"`)
		bad := b.row(ports.KindAttempt, "key", 1<<40, `"Outcome":"Complete"`)
		done, err := b.w.put(t.Context(), []ports.Row{good, bad}, ports.ClassLive)
		if e := ports.AsError(err); done != 1 || e == nil || e.Code != ports.TooLarge || e.Field != "AttemptNumber" || e.Limit == 0 {
			t.Errorf("done %d, %v", done, err)
		}
		b.has("before what was refused", good)
	})
}

func TestACharacterThatWasLostOnTheWayIsTold(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		whole := b.row(ports.KindItem, "whole", 1, `"LastError":"an odd one \ufffd`+"\ufffd"+`","Result":{"a":"`+"\ufffd"+`"},"Other":"`+"\ufffd"+`"`)
		hurt := b.row(ports.KindItem, "hurt", 1, `"LastError":"Grüße"`)
		b.put(whole, hurt)
		b.has("with U+FFFD of its own", whole, hurt)
		if _, err := b.d.Database(b.id).Exec(`UPDATE UVQueueWorkItem SET LastError = ? WHERE WorkItemHash = 'hurt'`, "Gr\ufffd\ufffd\u00dfe"); err != nil {
			t.Fatal(err)
		}
		if _, err := b.w.item(t.Context(), "hurt"); ports.CodeOf(err) != ports.Unavailable {
			t.Errorf("a text that has lost a character reads as %v", err)
		}
		b.has("beside it", whole)
	})
}
