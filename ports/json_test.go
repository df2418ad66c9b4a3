package ports_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast/ports"
)

// FuzzScanObject holds the scanner against encoding/json: it must accept the same objects, give the same members with the
// same bytes, and decode names the same way. It differs on purpose in three things: bytes that are no UTF-8 and nesting
// beyond the limit are refused, and a member that stands twice is given twice.
func FuzzScanObject(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` { "a" : [ 1 , -0.5e+3 , true , null , "x" ] } `, `{"a":01}`, `{"a":1.}`, `{"a":.5}`, `{"a":-}`, `{"a":1e}`, `{"a":+1}`, `{"a":NaN}`,
		`{"\ud83d\ude00":"\ud800","\udc00\ud800":1,"\uD800\u0041":2}`, `{"a":"\x"}`, `{"a":"\u12"}`, "{\"a\":\"\t\"}", `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`,
		`{"a":{}}x`, `[1]`, `"x"`, ``, ` `, `{"a":[[[[[[[[]]]]]]]]}`, `{"a":[[[[[[[[[]]]]]]]]]}`, `{"a":tru}`, `{"a":nulls}`, "\ufeff{}", "{\"\xff\":1}", "{\"a\u2028b\":1}",
	} {
		f.Add([]byte(seed))
	}
	const depth = 10
	f.Fuzz(func(t *testing.T, text []byte) {
		type member struct{ name, value string }
		var got, want []member
		err := ports.ScanObject(text, depth, func(name, value []byte) error {
			plain, _ := ports.Unquote(name)
			got = append(got, member{plain, string(value)})
			return nil
		})
		trimmed := bytes.TrimLeft(text, " \t\r\n")
		valid := json.Valid(text) && trimmed[0] == '{' && utf8.Valid(text) && depthOf(text) <= depth
		if (err == nil) != valid {
			t.Fatalf("%q: %v, encoding/json says %v", text, err, valid)
		}
		if err != nil {
			if ports.CodeOf(err) != ports.Invalid {
				t.Fatalf("%q is refused with %s", text, ports.CodeOf(err))
			}
			return
		}
		d := json.NewDecoder(bytes.NewReader(text))
		_, _ = d.Token()
		for d.More() {
			name, _ := d.Token()
			var value json.RawMessage
			if err := d.Decode(&value); err != nil {
				t.Fatal(err)
			}
			want = append(want, member{name.(string), string(value)})
		}
		if len(got) != len(want) {
			t.Fatalf("%q has %d members, encoding/json sees %d", text, len(got), len(want))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("%q: got %q, want %q", text, got[i], want[i])
			}
		}
	})
}

// depthOf counts the nesting of a valid JSON text.
func depthOf(text []byte) int {
	deepest, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '{' || c == '['):
			depth++
			deepest = max(deepest, depth)
		case !quoted && (c == '}' || c == ']'):
			depth--
		}
	}
	return deepest
}

// FuzzQuoted holds AppendQuoted and Unquote against each other and against encoding/json.
func FuzzQuoted(f *testing.F) {
	for _, seed := range []string{"", "a", "\x00\x1f\x7f\"\\/", "é\u2028😀", "<&>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = strings.ToValidUTF8(text, "?")
		quoted := ports.AppendQuoted(nil, text)
		if back, whole := ports.Unquote(quoted); back != text || !whole {
			t.Errorf("%q comes back as %q", text, back)
		}
		var theirs string
		if err := json.Unmarshal(quoted, &theirs); err != nil || theirs != text {
			t.Errorf("%q is read by encoding/json as %q, %v", text, theirs, err)
		}
	})
}

func TestALoneSurrogateIsSeen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		want  string
		whole bool
	}{
		`"\ud83d\ude00"`:       {"😀", true},
		`"\uD83D\uDE00!"`:      {"😀!", true},
		`"\ud800"`:             {"\uFFFD", false},
		`"\udc00\ud800"`:       {"\uFFFD\uFFFD", false},
		`"\ud800\u0041"`:       {"\uFFFDA", false},
		`"\ud800\ud83d\ude00"`: {"\uFFFD😀", false},
		`"\ud800\n"`:           {"\uFFFD\n", false},
		`"\ufffd"`:             {"\uFFFD", true},
	}
	for quoted, c := range cases {
		if got, whole := ports.Unquote([]byte(quoted)); got != c.want || whole != c.whole {
			t.Errorf("%s is %q, %v; want %q, %v", quoted, got, whole, c.want, c.whole)
		}
	}
}

func TestTheLimitOfNestingIsExact(t *testing.T) {
	t.Parallel()
	nested := func(depth int) []byte {
		return []byte(strings.Repeat(`{"a":`, depth-1) + `{}` + strings.Repeat(`}`, depth-1))
	}
	if err := ports.ScanObject(nested(ports.MaxDepth), ports.MaxDepth, nil); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	err := ports.ScanObject(nested(ports.MaxDepth+1), ports.MaxDepth, nil)
	if e := ports.AsError(err); e == nil || e.Code != ports.Invalid || e.Limit != ports.MaxDepth {
		t.Errorf("beyond the limit: %v", err)
	}
}

func TestBlankIsWhatMayBeFilled(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]bool{
		"": true, "null": true, `""`: true, "{}": true, "[]": true, "{ \n}": true, "[\t ]": true,
		"0": false, "-0": false, "10": false, "false": false, `" "`: false, "[0]": false, "{\"\":0}": false, `"null"`: false, "[[]]": false,
	} {
		if got := ports.Blank([]byte(raw)); got != want {
			t.Errorf("%q is blank: %v", raw, got)
		}
	}
}
