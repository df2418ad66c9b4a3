package ports_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

// someJSON makes values that are hard to keep: numbers in odd spellings, escapes, halves of surrogate pairs, white space
// inside, members that stand twice.
func someJSON(depth int) *rapid.Generator[string] {
	number := rapid.OneOf(
		rapid.SampledFrom([]string{`0`, `-0`, `0.0`, `-0.0`, `1.0`, `1e2`, `1E+02`, `0.1`, `0.10`, `1e400`, `-1e-400`, `123456789012345678901234567890`, `0.30000000000000004`,
			`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `18446744073709551615`, `9007199254740993`, `100000000000000000000000`, `5e-324`}),
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?`))
	text := rapid.Custom(func(t *rapid.T) string {
		parts := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]string{`\ud800`, `\udc00`, `\ud83d\ude00`, `\u0000`, `\u00e9`, `\/`, `/`, `\"`, `\\`, `\n`, `\b`, `\f`, `\t`, `\r`, `\u000a`, `é`, `😀`, "\u2028", "\x7f", `<&>`, `\uFFFD`, "\uFFFD", `$`, ` `}),
			rapid.StringMatching(`[a-z0-9 ]{0,5}`)), 0, 5).Draw(t, "parts")
		return `"` + strings.Join(parts, "") + `"`
	})
	plain := rapid.OneOf(number, text, rapid.SampledFrom([]string{`null`, `true`, `false`, `""`, `{}`, `[]`, `{ }`, "[\n]"}))
	if depth == 0 {
		return plain
	}
	inner := rapid.SliceOfN(rapid.Deferred(func() *rapid.Generator[string] { return someJSON(depth - 1) }), 0, 3)
	space := rapid.SampledFrom([]string{"", " ", "\n\t", "\r"})
	array := rapid.Custom(func(t *rapid.T) string {
		gap := space.Draw(t, "gap")
		return "[" + gap + strings.Join(inner.Draw(t, "items"), gap+","+gap) + gap + "]"
	})
	object := rapid.Custom(func(t *rapid.T) string {
		gap := space.Draw(t, "gap")
		var members []string
		for _, value := range inner.Draw(t, "values") {
			members = append(members, rapid.SampledFrom([]string{`"a"`, `"b"`, `"$raw"`, `"\u0061"`, `""`}).Draw(t, "name")+gap+":"+gap+value)
		}
		return "{" + gap + strings.Join(members, gap+","+gap) + gap + "}"
	})
	return rapid.OneOf(plain, plain, array, object)
}

// asDriversGive changes a row's values as databases do on the way: text as bytes, booleans and whole floats as integers, no
// sign on a zero.
func asDriversGive(t *rapid.T, c ports.Columns) ports.Columns {
	for at, value := range c.Values {
		switch v := value.(type) {
		case string:
			if rapid.Bool().Draw(t, "bytes") {
				c.Values[at] = []byte(v)
			}
		case bool:
			if rapid.Bool().Draw(t, "integers") {
				c.Values[at] = map[bool]int64{true: 1}[v]
			}
		case float64:
			if whole := int64(v); float64(whole) == v && v > -1e15 && v < 1e15 {
				c.Values[at] = whole
			}
		}
	}
	return c
}

func TestEveryRecordComesBackFromItsColumns(t *testing.T) {
	t.Parallel()
	for _, table := range []*ports.Table{ports.Items, ports.Events, ports.Attempts} {
		t.Run(string(table.Kind), func(t *testing.T) {
			t.Parallel()
			names := []string{"Unknown", "$absent", "$raw", "$$x", "", "Extra", "OrderKey", "DispatchedAt", "CompletedAt", "ErrorMessage", "a\u0000b", "Ünï", "a\"b\\c"}
			for _, c := range table.Members {
				names = append(names, c.Name)
			}
			rapid.Check(t, func(t *rapid.T) {
				var parts []string
				for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 10, rapid.ID).Draw(t, "members") {
					parts = append(parts, string(ports.AppendQuoted(nil, name))+":"+someJSON(2).Draw(t, "value"))
				}
				text := "{" + strings.Join(parts, ", ") + "}"
				given, err := ports.ParseRecord(table, []byte(text))
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				row := asDriversGive(t, given.Project(ports.First{EmittedAt: "stamp"}))
				if strings.Contains(fmt.Sprint(row.Values), "\x00") || strings.Contains(row.Extra, "\x00") {
					t.Fatalf("a column of %s has a NUL", text)
				}
				back, err := ports.RestoreRecord(table, row)
				if err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if !given.Same(back) || !back.Same(given) {
					t.Fatalf("given %s\nback  %s\nextra %s", text, back.JSON(), row.Extra)
				}
				if again, err := ports.ParseRecord(table, back.JSON()); err != nil || !again.Same(given) {
					t.Fatalf("%s is written as %s: %v", text, back.JSON(), err)
				}
			})
		})
	}
}

func TestAColumnShowsWhatPeopleLookFor(t *testing.T) {
	t.Parallel()
	given, err := ports.ParseRecord(ports.Items, []byte(`{"WorkItemHash":"w","Status":7,"Priority":1e2,"TimeoutMs":1e300,"Health":"0.5","LastError":"a\u0000b","Settings":null,"Result":{"a":1},"AssignedBeaconID":null,"CancelRequested":1}`))
	if err != nil {
		t.Fatal(err)
	}
	row := given.Project(ports.First{})
	for column, want := range map[string]any{
		"Status": "7", "Priority": int64(100), "TimeoutMs": int64(1<<63 - 1), "Health": float64(0), "LastError": "a\uFFFDb", "Settings": "", "Result": `{"a":1}`,
		"AssignedBeaconID": "", "CancelRequested": false, "RunID": "", "MaxAttempts": int64(0),
	} {
		if got := row.Values[ports.Items.Member(column)]; got != want {
			t.Errorf("%s shows %#v, want %#v", column, got, want)
		}
	}
}

func TestALiveEventShowsWhenItWasReceivedAndAnswersWithoutIt(t *testing.T) {
	t.Parallel()
	given, err := ports.ParseRecord(ports.Events, []byte(`{"WorkItemHash":"w"}`))
	if err != nil {
		t.Fatal(err)
	}
	row := given.Project(ports.First{EmittedAt: "stamp"})
	if got := row.Values[ports.Events.Member("EmittedAt")]; got != "stamp" {
		t.Errorf("EmittedAt shows %v", got)
	}
	back, err := ports.RestoreRecord(ports.Events, row)
	if err != nil || back.Get("EmittedAt") != nil {
		t.Errorf("back %s, %v", back.JSON(), err)
	}
}

func TestAnExtraThatIsNotOursIsADefect(t *testing.T) {
	t.Parallel()
	empty := ports.NewRecord(ports.Attempts).Project(ports.First{})
	for _, extra := range []string{`[]`, `{"$absent":7}`, `{"$absent":{"a":1}}`, `{"$raw":7}`, `{`, `{"$absent":["a"`} {
		empty.Extra = extra
		if _, err := ports.RestoreRecord(ports.Attempts, empty); ports.CodeOf(err) != ports.Internal && ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%s: %v", extra, err)
		}
	}
}

func TestAZeroKeepsItsSignWhereTheColumnCannot(t *testing.T) {
	t.Parallel()
	given, err := ports.ParseRecord(ports.Items, []byte(`{"WorkItemHash":"w","Health":-0}`))
	if err != nil {
		t.Fatal(err)
	}
	row := given.Project(ports.First{})
	row.Values[ports.Items.Member("Health")] = float64(0) // what SQLite reads back
	if back, err := ports.RestoreRecord(ports.Items, row); err != nil || string(back.Get("Health")) != "-0" {
		t.Errorf("back %s, %v", back.JSON(), err)
	}
}
