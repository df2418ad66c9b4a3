package meadowproxy

import (
	"strings"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

func TestTextsLongerThanAPieceOfAnAnswerComeBackWhole(t *testing.T) {
	t.Parallel()
	inManners(t, func(t *testing.T, o stock.Options) {
		b := newBehind(t, o)
		var rows []ports.Row
		for n, alphabet := range []string{"\u540d\u524d", "\u00e9", "a\u00e9", "\U0001F600", "\ufffd", "\ufffd\u540d"} {
			rows = append(rows, b.row(ports.KindItem, "torn-\u00e9-"+alphabet, n, `"LastError":"\u00e9","Result":"`+strings.Repeat(alphabet, 50_000)+`"`))
		}
		if done, err := b.w.put(t.Context(), rows, ports.ClassLive); err != nil || done != len(rows) {
			t.Fatalf("%d of %d rows are in: %v", done, len(rows), err)
		}
		listed := map[string]string{}
		page, err := b.w.items(t.Context(), ports.ItemQuery{Limit: 100, Bodies: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			listed[row.Key] = string(row.Body)
		}
		for _, want := range rows {
			got, err := b.w.item(t.Context(), want.Key)
			if err != nil || string(got.Body) != string(want.Body) {
				t.Errorf("%s comes back with %d bytes, want %d: %v", want.Key, len(got.Body), len(want.Body), err)
			}
			if listed[want.Key] != string(want.Body) {
				t.Errorf("the list has %s with %d bytes, want %d", want.Key, len(listed[want.Key]), len(want.Body))
			}
		}
	})
}

func TestATextIsKnownAgainWhereCharactersOfItWereCut(t *testing.T) {
	t.Parallel()
	const cut = "\ufffd"
	for _, c := range []struct {
		shown, given string
		want         bool
	}{
		{"", "", true},
		{"a", "b", false},
		{"a" + cut + cut + "b", "a\u00e9b", true},
		{"a" + cut + cut + cut + "b", "a\u540db", true},
		{"a" + cut + cut + cut + cut, "a\U0001F600", true},
		{cut, cut, true},
		{cut + cut, cut, true},
		{cut + cut + cut, cut + "\u00e9", true},
		{"a" + cut + cut + "b", "aeb", false},
		{"a" + cut + cut + "b", "a\u00e9c", false},
		{"a" + cut + cut, "a\u00e9\u00e9\u00e9", false},
		{"a" + cut + cut + "b", "ab", false},
		{"a" + cut + cut, "a", false},
		{"a" + cut + cut + "b" + cut + cut, "a\u00e9b\u00e9", true},
	} {
		if got := alike(c.shown, c.given); got != c.want {
			t.Errorf("%q for %q: %v, want %v", c.shown, c.given, got, c.want)
		}
	}
}
