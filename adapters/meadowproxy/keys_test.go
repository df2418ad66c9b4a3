package meadowproxy

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// strangeKeys have every sign that a path, a filter, a pattern or a statement reads otherwise, or are alike for some engine.
var strangeKeys = []string{
	"wi-plain", "a~b", "a~", "~a", "~", "a/b", "/", "a%2Fb", "%", "%25", "a?b=c&d", "?", "#", "a#b", "a'b", `a"b`, "a\nb", "a\tb", "a,b", ",", "(a)", ")", "a b", " a", "a ", " ",
	"a+b", "a;b", `a\b`, "..", ".", "../..", "漢字", "😀", "😁", "é", "e\u0301", "E", "AbC", "abc", "ABC", "abc ", "äbc", "ß", "ss", "a_b", "a%b", "axb", "a*b",
	"wi~tilde~FBV~Status~EQ~Pending", "FBV~WorkItemHash~EQ~wi-plain", "a~FSF~Status~ASC~0", "FilteredTo", "Count", "By", "Deleted~EQ~1", "x~FBV~Deleted~EQ~1", "0", "1", "'; DROP TABLE UVManifest; --",
	"FOP~0~(~0", "wi-plain,a", "a,b,c", "null", "NULL", "undefined", "{}", "[1]", "true", "10", "1e1", "\ufffd", "\u2028",
	strings.Repeat("k", 128), strings.Repeat("k", 129), strings.Repeat("k", 255), strings.Repeat("k", 256), strings.Repeat("k", 511) + "a", strings.Repeat("k", 511) + "b", strings.Repeat("漢", 400),
	strings.Repeat("~", 300),
}

func TestKeysThatLookLikeSomethingElseTouchTheirOwnRowAlone(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		for _, kind := range ports.Kinds {
			var rows []ports.Row
			for i, key := range strangeKeys {
				rows = append(rows, b.row(kind, key, 1, fmt.Sprintf(`%q:"state %d"`, word[kind], i)))
			}
			b.put(rows...)
			b.has("together", rows...)
			for i, key := range strangeKeys {
				next := b.row(kind, key, 1, fmt.Sprintf(`%q:"alone %d"`, word[kind], i))
				b.put(next)
				rows[i] = next
			}
			b.has("alone", rows...)
			b.w.forget()
			for i := 0; i < len(rows); i += 2 {
				b.put(ports.Row{Kind: kind, Key: rows[i].Key, GUID: rows[i].GUID, Number: rows[i].Number, Gone: true})
			}
			for i := range rows {
				if i%2 == 0 {
					b.lacks("after every other one was removed", rows[i])
				} else {
					b.has("after every other one was removed", rows[i])
				}
			}
			b.put(rows...)
			b.has("after they came back", rows...)
		}
	})
}

func TestRowsOfTablesThatOthersMadeFitTheirWidths(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.Postgres})
	b.w.columns["UVQueueWorkItem"]["WorkItemHash"] = column{"character varying", 40}
	long := b.row(ports.KindItem, strings.Repeat("k", 41), 1, `"Status":"Running"`)
	b.put(long)
	b.has("a key that is too long for the column", long)
	if n := b.count(`SELECT count(*) FROM UVQueueWorkItem WHERE length(WorkItemHash) <= 40`); n != 1 {
		t.Errorf("%d rows have a key that fits", n)
	}
}

func TestRandomKeysAreNeverTakenForOthers(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		const kind = ports.KindItem
		is := map[string]ports.Row{}
		rapid.Check(t, func(rt *rapid.T) {
			var batch []ports.Row
			for range rapid.IntRange(1, 8).Draw(rt, "rows") {
				key := strings.ReplaceAll(strangeText().Draw(rt, "key"), "\x00", "")
				if key == "" {
					continue
				}
				r := b.row(kind, key, 1, fmt.Sprintf(`"Status":"state %d"`, b.seq))
				if rapid.IntRange(0, 3).Draw(rt, "gone") == 0 {
					r = ports.Row{Kind: kind, Key: key, Gone: true}
				}
				batch = append(batch, r)
			}
			if rapid.Bool().Draw(rt, "unknown") {
				b.w.forget()
			}
			b.put(batch...)
			for _, r := range batch {
				if is[r.Key] = r; r.Gone {
					delete(is, r.Key)
				}
			}
			for _, r := range batch {
				if now, ok := is[r.Key]; ok {
					b.has("of the batch", now)
				} else {
					b.lacks("of the batch", r)
				}
			}
			if n := b.count(`SELECT count(*) FROM UVQueueWorkItem WHERE Deleted = 0`); n != len(is) {
				rt.Fatalf("there are %d rows, want %d", n, len(is))
			}
			if t.Failed() {
				rt.FailNow()
			}
		})
		for _, r := range is {
			b.has("at the end", r)
		}
	})
}
