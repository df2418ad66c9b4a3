package stock

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestFiltersFindWhatTheOriginalFinds(t *testing.T) {
	t.Parallel()
	everything := []string{"a", "b", "B", "c~d", "e,f", ""}
	cases := []struct {
		name, filter string
		want         []string
		only         Manner // "" is every manner
	}{
		{name: "equality", filter: "FBV~RunID~EQ~a", want: []string{"a"}},
		{name: "equality with the empty text", filter: "FBV~RunID~EQ~", want: []string{""}},
		{name: "inequality", filter: "FBV~RunID~NE~a~FBV~RunID~NE~", want: []string{"b", "B", "c~d", "e,f"}, only: SQLite},
		{name: "greater", filter: "FBV~RunID~GT~b", want: []string{"c~d", "e,f"}, only: SQLite},
		{name: "at least", filter: "FBV~RunID~GE~c~d", want: []string{"c~d", "e,f"}, only: SQLite}, // the cut value still sorts before
		{name: "less", filter: "FBV~RunID~LT~a", want: []string{"", "B"}, only: SQLite},
		{name: "at most", filter: "FBV~RunID~LE~a", want: []string{"", "B", "a"}, only: SQLite},
		{name: "like", filter: "FBV~RunID~LK~b%25", want: []string{"b", "B"}, only: SQLite},
		{name: "like on Postgres", filter: "FBV~RunID~LK~b%25", want: []string{"b"}, only: Postgres},
		{name: "a wildcard in the place of a tilde", filter: "FBV~RunID~LK~c_d", want: []string{"c~d"}},
		{name: "not like", filter: "FBV~RunID~NLK~%25%25~FBV~RunID~NE~a", want: nil},
		{name: "a list", filter: "FBL~RunID~INN~a,c,e", want: []string{"a"}},
		{name: "outside of a list", filter: "FBL~RunID~NIN~a,,B", want: []string{"b", "c~d", "e,f"}, only: SQLite},
		{name: "a list with one value compares", filter: "FBL~RunID~EQ~a", want: []string{"a"}},
		{name: "no list behind INN", filter: "FBV~RunID~INN~a,b", want: nil},
		{name: "no list behind INN, one value", filter: "FBV~RunID~INN~e,f", want: []string{"e,f"}},
		{name: "not null", filter: "FBV~RunID~NN~x", want: everything},
		{name: "null", filter: "FBV~LastError~IN~x", want: nil, only: Postgres},
		{name: "or", filter: "FBV~RunID~EQ~a~FBVOR~RunID~EQ~e,f", want: []string{"a", "e,f"}},
		{name: "or of a list", filter: "FBV~RunID~EQ~a~FBLOR~RunID~INN~c,", want: []string{"a", ""}},
		{name: "parentheses", filter: "FOP~0~(~0~FBV~RunID~EQ~a~FBVOR~RunID~EQ~~FCP~0~)~0~FBV~RunID~NE~a", want: []string{""}},
		{name: "parentheses behind an or", filter: "FBV~RunID~EQ~a~FOPOR~0~(~0~FBV~RunID~EQ~~FCP~0~)~0", want: []string{"a", ""}},
		{name: "an unknown operator is equality", filter: "FBV~RunID~WAT~a", want: []string{"a"}},
		{name: "an unknown instruction is ignored", filter: "WAT~RunID~EQ~a", want: everything},
		{name: "too few parts are ignored", filter: "FBV~RunID~EQ", want: everything},
		{name: "a text is ignored", filter: "a", want: everything},
		{name: "a value is cut at its tilde", filter: "FBV~RunID~EQ~c~d", want: nil},
		{name: "and what follows it is misread", filter: "FBV~RunID~EQ~a~x~FBV~Status~EQ~no", want: []string{"a"}},
		{name: "an encoded tilde is one", filter: "FBV~RunID~EQ~c%7Ed", want: nil},
		{name: "one encoded twice is none", filter: "FBV~RunID~EQ~c%257Ed", want: nil},
		{name: "a last stanza without a value counts", filter: "FBV~RunID~EQ~a~FBV~RunID", want: nil},
		{name: "case in MySQL", filter: "FBV~RunID~EQ~b", want: []string{"b", "B"}, only: MySQL},
		{name: "trailing spaces in MySQL", filter: "FBV~RunID~EQ~a%20%20", want: []string{"a"}, only: MySQL},
		{name: "a text that is no number counts as 0 in MySQL", filter: "FBV~Priority~EQ~true", want: everything, only: MySQL},
		{name: "a text that is no number matches nothing in SQLite", filter: "FBV~Priority~EQ~true", want: nil, only: SQLite},
		{name: "a number as text", filter: "FBV~Priority~EQ~0", want: everything},
		{name: "a boolean as 1", filter: "FBV~CancelRequested~EQ~1", want: nil},
		{name: "a boolean as word on Postgres", filter: "FBV~CancelRequested~EQ~false", want: everything, only: Postgres},
	}
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		for i, run := range everything {
			post(t, d, base+"UVQueueWorkItem", fmt.Sprintf(`{"WorkItemHash":"wi-%d","RunID":%q}`, i, run))
		}
		for _, c := range cases {
			if c.only != "" && c.only != m {
				continue
			}
			got := column1(t, d, base+"UVQueueWorkItems/FilteredTo/"+c.filter, "RunID")
			slices.Sort(got)
			wanted := slices.Sorted(slices.Values(c.want))
			if !slices.Equal(got, wanted) {
				t.Errorf("%s: %s found %q, want %q", c.name, c.filter, got, wanted)
			}
		}
	})
}

func TestFiltersThatTheEngineRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		filter string
		want   map[Manner]string
	}{
		{"FBV~NoSuch~EQ~x", map[Manner]string{
			SQLite: `"no such column: NoSuch","Code":"ERR_SQLITE_ERROR"`, Postgres: `"column \"NoSuch\" does not exist","Code":"42703"`,
			MySQL: `"Unknown column 'NoSuch' in 'where clause'","Code":"ER_BAD_FIELD_ERROR"`,
		}},
		{"FSF~NoSuch~ASC~0", map[Manner]string{
			SQLite: "no such column: NoSuch", Postgres: "does not exist", MySQL: "Unknown column 'NoSuch' in 'order clause'",
		}},
		{"FBV~LastError~IN~x", map[Manner]string{SQLite: "syntax error"}},
		{"FBL~RunID~EQ~a,b", map[Manner]string{SQLite: "cannot be bound", Postgres: "42601", MySQL: "ER_PARSE_ERROR"}},
		{"FOP~0~(~0~FBV~RunID~EQ~x", map[Manner]string{SQLite: "syntax error", Postgres: "42601", MySQL: "ER_PARSE_ERROR"}},
		{"FBV~RunID~EQ~x~FCP~0~)~0", map[Manner]string{SQLite: "syntax error", Postgres: "42601", MySQL: "ER_PARSE_ERROR"}},
		{"FBV~Priority~EQ~x", map[Manner]string{Postgres: `invalid input syntax for type integer: \"x\"","Code":"22P02"`}},
		{"FBV~Priority~EQ~3000000000", map[Manner]string{Postgres: "22003"}},
		{"FBV~CancelRequested~EQ~maybe", map[Manner]string{Postgres: "22P02"}},
		{"FBV~RunID~EQ~%00", map[Manner]string{Postgres: "22021"}},
	}
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		for _, c := range cases {
			if text, refused := c.want[m]; refused {
				want{500, text}.check(t, c.filter, call(t, d, "GET", base+"UVQueueWorkItems/FilteredTo/"+c.filter, ""))
			}
		}
	})
}

func TestByComparesKeysThatAFilterCannotExpress(t *testing.T) {
	t.Parallel()
	keys := []string{
		"wi~tilde~FBV~Status~EQ~Pending", "a/b", "50%", "%41", "q?x=1#f", "it's \"so\"", "line\nfeed", "party-\U0001F600", "FBV~WorkItemHash~EQ~", "a,b", "a;b&c+d", `back\slash`,
	}
	each(t, func(t *testing.T, _ Manner, d *Databeacon, base string) {
		for _, key := range keys {
			post(t, d, base+"UVQueueWorkItem", string(encode(map[string]any{"WorkItemHash": key})))
		}
		for _, key := range keys {
			path := "/By/WorkItemHash/" + url.PathEscape(key)
			if got := column1(t, d, base+"UVQueueWorkItems"+path, "WorkItemHash"); !slices.Equal(got, []string{key}) {
				t.Errorf("%q: %q", key, got)
			}
			want{200, `{"Count":1}`}.check(t, key, call(t, d, "GET", base+"UVQueueWorkItems/Count"+path, ""))
		}
	})
}

func TestPagesEndWhereTheOriginalEndsThem(t *testing.T) {
	t.Parallel()
	d, base := store(t, Options{})
	var rows []string
	for i := range 260 {
		rows = append(rows, fmt.Sprintf(`{"WorkItemHash":"wi-%03d","Status":"Pending"}`, i))
	}
	if a := call(t, d, "POST", base+"UVQueueWorkItems", "["+strings.Join(rows, ",")+"]"); a.Status != 200 {
		t.Fatal(a)
	}
	for _, c := range []struct {
		path  string
		count int
		first string
	}{
		{"", 250, "wi-000"},
		{"/FilteredTo/FBV~Status~EQ~Pending", 250, "wi-000"},
		{"/By/Status/Pending", 250, "wi-000"},
		{"/0/1000", 260, "wi-000"},
		{"/0/0", 260, "wi-000"},
		{"/0/-3", 260, "wi-000"},
		{"/0/many", 260, "wi-000"},
		{"/-5/10", 10, "wi-000"},
		{"/x/10", 10, "wi-000"},
		{"/255/10", 5, "wi-255"},
		{"/By/Status/Pending/255/10", 5, "wi-255"},
		{"/FilteredTo/FSF~WorkItemHash~DESC~0/0/3", 3, "wi-259"},
		{"/FilteredTo/FSF~Status~ASC~0~FSF~IDUVQueueWorkItem~DESC~0/1/3", 3, "wi-258"},
		{"/FilteredTo/FSF~WorkItemHash~desc~0/0/3", 3, "wi-000"}, // only DESC descends
	} {
		got := column1(t, d, base+"UVQueueWorkItems"+c.path, "WorkItemHash")
		if len(got) != c.count || got[0] != c.first {
			t.Errorf("%s: %d rows from %s, want %d from %s", c.path, len(got), got[0], c.count, c.first)
		}
	}
	want{200, `{"Count":260}`}.check(t, "count", call(t, d, "GET", base+"UVQueueWorkItems/Count", ""))
	want{200, `{"Count":1}`}.check(t, "count", call(t, d, "GET", base+"UVQueueWorkItems/Count/FilteredTo/FBV~WorkItemHash~EQ~wi-007", ""))
}

func TestARowOfPostgresMovesWhenItIsUpdated(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, m Manner, d *Databeacon, base string) {
		for i := range 3 {
			post(t, d, base+"UVQueueWorkItem", fmt.Sprintf(`{"WorkItemHash":"wi-%d"}`, i))
		}
		want{200, "Running"}.check(t, "put", call(t, d, "PUT", base+"UVQueueWorkItem", `{"IDUVQueueWorkItem":1,"Status":"Running"}`))
		order := []string{"wi-0", "wi-1", "wi-2"}
		if m == Postgres {
			order = []string{"wi-1", "wi-2", "wi-0"}
		}
		if got := column1(t, d, base+"UVQueueWorkItems", "WorkItemHash"); !slices.Equal(got, order) {
			t.Errorf("%q, want %q", got, order)
		}
		sorted := base + "UVQueueWorkItems/FilteredTo/FSF~IDUVQueueWorkItem~ASC~0"
		if got := column1(t, d, sorted, "WorkItemHash"); !slices.Equal(got, []string{"wi-0", "wi-1", "wi-2"}) {
			t.Errorf("sorted: %q", got)
		}
	})
}

func TestTextsSortAsTheEngineSortsThem(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options Options
		want    []string
	}{
		{Options{Manner: SQLite}, []string{"", "1", "B", "_", "a", "c", "~"}},
		{Options{Manner: Postgres}, []string{"", "1", "B", "_", "a", "c", "~"}},
		{Options{Manner: Postgres, Locale: true}, []string{"", "_", "~", "1", "a", "B", "c"}},
		{Options{Manner: MySQL}, []string{"", "_", "~", "1", "a", "B", "c"}},
	} {
		t.Run(fmt.Sprint(c.options.Manner, c.options.Locale), func(t *testing.T) {
			t.Parallel()
			d, base := store(t, c.options)
			for _, key := range []string{"c", "B", "a", "~", "1", "_", ""} {
				post(t, d, base+"UVQueueWorkItem", string(encode(map[string]any{"WorkItemHash": key})))
			}
			got := column1(t, d, base+"UVQueueWorkItems/FilteredTo/FSF~WorkItemHash~ASC~0", "WorkItemHash")
			if !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
