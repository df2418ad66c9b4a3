package meadowproxy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

// walk pages through a list to its end.
func walk(t *testing.T, list func(after *ports.Cursor) (ports.Page, error)) (keys []string) {
	t.Helper()
	var after *ports.Cursor
	for range 200 {
		page, err := list(after)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Rows {
			keys = append(keys, r.Key+r.GUID)
		}
		if page.Next == nil {
			return keys
		}
		if after, err = ports.ParseCursor(page.Next.Token()); err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("the list has no end")
	return nil
}

func TestAListOfRowsOfOneMomentIsWholeAndInOrder(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		const many = 300
		var rows []ports.Row
		var want []string
		for i := range many {
			key := fmt.Sprintf("%c-%d", "aAbBéz~"[i%7], i)
			r := b.row(ports.KindItem, key, 1, `"Status":"Running","Result":{"a":1}`)
			r.First.EnqueuedKey = "2026-01-01T00:00:00.000000000Z"
			if i%50 == 0 {
				r.First.EnqueuedKey = fmt.Sprintf("2026-01-01T00:00:00.0000000%02dZ", 1+i/50)
			}
			rows = append(rows, r)
		}
		b.put(rows...)
		slices.SortFunc(rows, func(a, c ports.Row) int {
			return strings.Compare(a.First.EnqueuedKey+"|"+a.Key, c.First.EnqueuedKey+"|"+c.Key)
		})
		for _, r := range rows {
			want = append(want, r.Key)
		}
		for _, desc := range []bool{false, true} {
			for _, limit := range []int{70, 299, 300, 301} {
				for _, bodies := range []bool{false, true} {
					got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
						return b.w.items(t.Context(), ports.ItemQuery{Desc: desc, After: after, Limit: limit, Bodies: bodies})
					})
					if !slices.Equal(got, want) {
						t.Errorf("desc %v, limit %d, bodies %v: %d keys are not the %d in order", desc, limit, bodies, len(got), len(want))
					}
				}
			}
			slices.Reverse(want)
		}
	})
}

func TestFiltersFindWhatAColumnIsTooNarrowFor(t *testing.T) {
	t.Parallel()
	values := []string{"run", "Run", "run~1", "run_1", "run%1", "run,1", "run 1", "run ", "a~FBV~Status~EQ~x", strings.Repeat("r", 300) + "1", strings.Repeat("r", 300) + "2", "é", "e"}
	inEach(t, func(t *testing.T, b *behind) {
		var rows []ports.Row
		for i, v := range values {
			rows = append(rows, b.row(ports.KindItem, fmt.Sprintf("key-%02d", i), 1, fmt.Sprintf(`"RunID":%s,"Status":%s,"LastError":%s`,
				ports.AppendQuoted(nil, v), ports.AppendQuoted(nil, v), ports.AppendQuoted(nil, "because of "+v+"."))))
		}
		b.put(rows...)
		for i, v := range values {
			want := []string{rows[i].Key}
			for name, f := range map[string]ports.ItemFilter{"RunID": {RunID: v}, "Status": {Status: []string{v}}, "ErrorText": {ErrorText: "of " + v + "."}} {
				got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
					return b.w.items(t.Context(), ports.ItemQuery{Filter: f, After: after, Limit: 5})
				})
				if !slices.Equal(got, want) {
					t.Errorf("%s %.40q: %q, want %q", name, v, got, want)
				}
			}
		}
		got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
			return b.w.items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{Status: values}, After: after, Limit: 3})
		})
		if len(got) != len(values) {
			t.Errorf("with any of the values: %q", got)
		}
	})
}

func TestAWordIsFoundInAnErrorThatIsTooLargeForItsColumn(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		b.put(b.row(ports.KindItem, "small", 1, `"LastError":"short"`), b.row(ports.KindItem, "large", 1, fmt.Sprintf(`"LastError":%q`, large(150_000)+"needle")))
		got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
			return b.w.items(t.Context(), ports.ItemQuery{Filter: ports.ItemFilter{ErrorText: "needle"}, After: after})
		})
		if !slices.Equal(got, []string{"large"}) {
			t.Errorf("found in %q", got)
		}
	})
}

// others writes rows as a stock hub would, if it could: columns of the first version alone.
func (b *behind) others(t *testing.T, table, body string) {
	t.Helper()
	r, err := b.w.request(t.Context(), ports.ClassLive, "POST", b.w.bases[table], []byte(body), "")
	if err != nil || r.status != 200 {
		t.Fatalf("%d %s, %v", r.status, r.body, err)
	}
}

func TestRowsThatOthersWroteAreRead(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		b.others(t, "UVQueueWorkItem", `{"WorkItemHash":"theirs","Status":"Complete","Settings":"{\"a\":1}","Result":"no JSON","Health":0.75,"CancelRequested":true,"Priority":3,"EnqueuedAt":"2026-01-01T00:00:00.000Z"}`)
		b.others(t, "UVQueueWorkItemEvent", `{"WorkItemHash":"theirs","EventGUID":"g-1","EventType":"enqueued","Payload":"{}"}`)
		b.others(t, "UVQueueWorkItemAttempt", `{"WorkItemHash":"theirs","AttemptNumber":1,"Outcome":"Complete"}`)
		b.others(t, "UVManifest", `{"Hash":"theirs","Status":"Complete","ManifestJSON":"{\"Hash\":\"theirs\", \"Output\":{}}"}`)
		b.others(t, "UVManifest", `{"Hash":"hollow","Status":"Waiting"}`)
		ours := b.row(ports.KindItem, "ours", 1, `"Status":"Running"`)
		b.put(ours)
		for _, want := range []ports.Row{
			{Kind: ports.KindItem, Key: "theirs", Body: []byte(`{"WorkItemHash":"theirs","Settings":{"a":1},"Status":"Complete","Priority":3,"EnqueuedAt":"2026-01-01T00:00:00.000Z","Health":0.75,"Result":"no JSON","CancelRequested":true}`)},
			{Kind: ports.KindEvent, Key: "theirs", GUID: "g-1", Body: []byte(`{"EventGUID":"g-1","WorkItemHash":"theirs","EventType":"enqueued","Payload":{}}`)},
			{Kind: ports.KindAttempt, Key: "theirs", Number: 1, Body: []byte(`{"WorkItemHash":"theirs","AttemptNumber":1,"Outcome":"Complete"}`)},
			{Kind: ports.KindManifest, Key: "theirs", Body: []byte(`{"Hash":"theirs", "Output":{}}`)},
			{Kind: ports.KindManifest, Key: "hollow", Body: []byte(`{"Hash":"hollow","Status":"Waiting"}`)},
		} {
			b.has("of others", want)
		}
		for desc, want := range map[bool][]string{false: {"theirs", "ours"}, true: {"ours", "theirs"}} {
			for limit := 1; limit < 4; limit++ {
				got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
					return b.w.items(t.Context(), ports.ItemQuery{Desc: desc, After: after, Limit: limit})
				})
				if !slices.Equal(got, want) {
					t.Errorf("desc %v, limit %d: %q, want %q", desc, limit, got, want)
				}
			}
		}
		mine := b.row(ports.KindItem, "theirs", 1, `"Status":"Error"`)
		b.put(mine)
		b.has("after it was replaced", mine)
	})
}

func TestRowsFromBeforeOurColumnsWereThereStandFirstInTheirLists(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{Manner: stock.Postgres})
	b.put(b.row(ports.KindManifest, "ours", 1, ""))
	for i := range 3 {
		b.put(b.row(ports.KindManifest, fmt.Sprint("old-", i), 1, ""))
	}
	if _, err := b.d.Database(b.id).Exec(`UPDATE UVManifest SET OrderKey = NULL, ReceivedAt = NULL, ChangeHost = NULL, ChangeSeq = NULL, Extra = NULL WHERE Hash LIKE 'old-%'`); err != nil {
		t.Fatal(err)
	}
	want := []string{"old-0", "old-1", "old-2", "ours"}
	for _, desc := range []bool{false, true} {
		got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
			return b.w.manifests(t.Context(), ports.ManifestQuery{Desc: desc, After: after, Limit: 2})
		})
		if !slices.Equal(got, want) {
			t.Errorf("desc %v: %q, want %q", desc, got, want)
		}
		slices.Reverse(want)
	}
}

func TestAnInterfaceThatDoesNotShortenRowsIsReadAllTheSame(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{})
	w := b.meddle(&meddling{before: func(_, path string) error {
		if strings.Contains(path, "/LiteExtended/") {
			b.t.Error("it was asked for short rows again")
		}
		return nil
	}})
	w.whole.Store(true)
	var rows []ports.Row
	for i := range 30 {
		rows = append(rows, b.row(ports.KindItem, fmt.Sprint("key-", i), 1, `"Status":"Running"`))
	}
	b.putBy(w, rows...)
	b.has("read back", rows...)
	got := walk(t, func(after *ports.Cursor) (ports.Page, error) {
		return w.items(t.Context(), ports.ItemQuery{After: after, Limit: 7})
	})
	if len(got) != len(rows) {
		t.Errorf("%d rows in the list, want %d", len(got), len(rows))
	}
}

func TestAListIsAskedForInFewRequests(t *testing.T) {
	t.Parallel()
	b := newBehind(t, stock.Options{})
	var rows []ports.Row
	for i := range 400 {
		rows = append(rows, b.row(ports.KindItem, fmt.Sprint("key-", i), 1, `"Status":"Running"`))
	}
	b.put(rows...)
	counts := b.requests()
	if _, err := b.w.items(t.Context(), ports.ItemQuery{Desc: true, Limit: 50}); err != nil {
		t.Fatal(err)
	}
	all := 0
	for _, n := range counts() {
		all += n
	}
	if all > 2 {
		t.Errorf("the first page of a list took %v", counts())
	}
}

func TestAnAnswerWithoutTheColumnsThatWereAskedForIsNotTaken(t *testing.T) {
	t.Parallel()
	a := ask{layout: layouts[ports.KindItem], columns: []string{"WorkItemHash", "Deleted"}}
	for body, fits := range map[string]bool{
		`[]`: true, `[{"Value":"UVQueueWorkItem #1","IDUVQueueWorkItem":1,"WorkItemHash":"a","Deleted":0}]`: true,
		`[{"Value":"UVQueueWorkItem #1","IDUVQueueWorkItem":1}]`: false, `[{"WorkItemHash":"a","Deleted":0}]`: false, `{}`: false, ``: false,
	} {
		if a.fits(&reply{200, []byte(body)}) != fits {
			t.Errorf("%s fits: %v", body, !fits)
		}
	}
	for status, body := range map[int]string{404: "<!DOCTYPE html>", 405: `{"code":"MethodNotAllowed","message":"GET is not allowed"}`} {
		if a.fits(&reply{status, []byte(body)}) {
			t.Errorf("status %d fits", status)
		}
	}
	if !a.fits(&reply{500, []byte(`{"Error":"no such column: X","Code":"ERR_SQLITE_ERROR"}`)}) {
		t.Error("an error of the database is taken for a missing route")
	}
}
