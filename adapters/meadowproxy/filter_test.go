package meadowproxy

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// strangeText draws texts of the signs that a path or a filter reads otherwise.
func strangeText() *rapid.Generator[string] {
	sign := rapid.SampledFrom([]string{"~", "/", "%", "?", "#", "'", `"`, "\n", ",", "(", ")", " ", "+", "&", ";", `\`, ".", "_", "*", "a", "A", "é", "e\u0301", "😀", "7E", "FBV", "FOP", "FSF", "EQ", "Status", "\x00"})
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(sign, 0, 12).Draw(t, "signs"), "")
	})
}

func TestEveryFilterIsWholeStanzasWithTheirValues(t *testing.T) {
	t.Parallel()
	instructions := []string{"FBV", "FBVOR", "FBL", "FOP", "FCP", "FSF"}
	operators := []string{"EQ", "LK", "GE", "LE", "LT", "GT", "INN", "IN", "(", ")", "ASC", "DESC"}
	rapid.Check(t, func(t *rapid.T) {
		var f filter
		var said []string
		for range rapid.IntRange(1, 6).Draw(t, "conditions") {
			value := strangeText().Draw(t, "value")
			switch rapid.IntRange(0, 7).Draw(t, "condition") {
			case 0:
				if value != "" {
					f.is("Status", value)
					said = append(said, value)
				}
			case 1:
				values := slices.DeleteFunc(rapid.SliceOfN(strangeText(), 1, 5).Draw(t, "values"), func(v string) bool { return v == "" })
				if len(values) > 0 {
					f.any("WorkItemHash", values)
					said = append(said, values...)
				}
			case 2:
				f.from("OrderKey", value)
			case 3:
				f.before("OrderKey", value)
			case 4:
				f.contains("LastError", value, rapid.Bool().Draw(t, "parts"))
			case 5:
				f.blank("OrderKey", rapid.Bool().Draw(t, "null"))
			case 6:
				f.numbers("IDUVManifest", []int64{1, 2})
			case 7:
				f.until("OrderKey", value)
			}
		}
		f.deletedToo()
		f.by(true, "OrderKey", "IDUVManifest")
		text := f.text.String()
		if strings.ContainsAny(text, "/?# \"'\n\x00") || strings.ContainsFunc(text, func(r rune) bool { return r > '~' }) {
			t.Fatalf("%q cannot stand in a path", text)
		}
		decoded, err := url.PathUnescape(text)
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(decoded, "~")
		if len(parts)%4 != 0 {
			t.Fatalf("%q is not made of stanzas of four", decoded)
		}
		var values []string
		depth := 0
		for s := range slices.Chunk(parts, 4) {
			if !slices.Contains(instructions, s[0]) || !slices.Contains(operators, s[2]) {
				t.Fatalf("%q is a stanza that nobody knows", s)
			}
			switch s[0] {
			case "FOP":
				depth++
			case "FCP":
				depth--
			case "FBL":
				values = append(values, strings.Split(s[3], ",")...)
			default:
				values = append(values, s[3])
			}
		}
		if depth != 0 {
			t.Fatalf("%q has a parenthesis that is not closed", decoded)
		}
		for _, v := range said {
			if !slices.Contains(values, v) && !slices.Contains(values, wider(v)) {
				t.Fatalf("%q is asked for by none of %q", v, values)
			}
		}
	})
}
