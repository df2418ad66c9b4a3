package ports

import (
	"strings"
	"testing"
)

func TestARecordComesBackFromItsColumnsByteForByte(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"plain":               `{"WorkItemHash":"w","Status":"Pending","Priority":3,"Health":0.9834,"CancelRequested":false}`,
		"nulls":               `{"WorkItemHash":"w","AssignedBeaconID":null,"Result":null,"Health":null,"Priority":null,"CancelRequested":null}`,
		"wrong types":         `{"WorkItemHash":"w","Status":5,"Priority":"high","Health":"0.5","CancelRequested":1,"RetryAfter":1796004734800,"LastError":{"a":1}}`,
		"number spellings":    `{"WorkItemHash":"w","Priority":1.10,"TimeoutMs":1e3,"QueueWaitMs":9007199254740993,"MaxAttempts":-0,"AttemptNumber":18446744073709551615,"Health":1.0}`,
		"text spellings":      `{"WorkItemHash":"w","LastError":"caf\u00e9 \/ \ud83d\ude00","CancelReason":"a\u0000b","HealthReason":"\ud800","Status":"x\ty"}`,
		"opaque bodies":       `{"WorkItemHash":"w","Settings":{"b":1,   "a":2,"a":3,"x":1.000,"z":"\u003c"},"Result":"text"}`,
		"empty":               `{"WorkItemHash":"w","Settings":{},"AffinityKey":"","LastError":"","Result":[]}`,
		"unknown members":     `{"WorkItemHash":"w","RequireAffinityMatch":false,"$raw":{"Status":1},"$$x":2,"$absent":[],"Extra":{"a":1},"OrderKey":"mine","Deleted":true}`,
		"escaped member name": `{"WorkItemHash":"w","Stat\u0075s":"Pending"}`,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given, err := ParseRecord(Items, []byte(text))
			if err != nil {
				t.Fatal(err)
			}
			back, err := RestoreRecord(Items, given.Project(First{}))
			if err != nil {
				t.Fatal(err)
			}
			if !given.Same(back) {
				t.Errorf("given %s\nback  %s", given.JSON(), back.JSON())
			}
		})
	}
}

func TestAnAttemptsColumnsTakeTheBridgesNames(t *testing.T) {
	t.Parallel()
	given, err := ParseRecord(Attempts, []byte(`{"WorkItemHash":"w","AttemptNumber":1,"CompletedAt":"T","ErrorMessage":"boom","DurationMs":5}`))
	if err != nil {
		t.Fatal(err)
	}
	row := given.Project(First{})
	if got := row.Values[Attempts.Member("EndedAt")]; got != "T" {
		t.Errorf("EndedAt is %v", got)
	}
	if got := row.Values[Attempts.Member("Error")]; got != "boom" {
		t.Errorf("Error is %v", got)
	}
	back, err := RestoreRecord(Attempts, row)
	if err != nil || !given.Same(back) {
		t.Errorf("back %s, %v", back.JSON(), err)
	}
}

func TestARecordThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ text, want string }{
		"array":           {`[1]`, "is not a JSON object"},
		"cut":             {`{"a":1`, "ends too early"},
		"trailing":        {`{} x`, "behind its end"},
		"duplicate":       {`{"Status":1,"Status":2}`, "Status: stands twice"},
		"duplicate other": {`{"x":1,"\u0078":2}`, "x: stands twice"},
		"utf-8":           {"{\"a\":\"\xff\"}", "UTF-8 at byte 6"},
		"bad number":      {`{"a":01}`, "not valid JSON"},
		"bad escape":      {`{"a":"\x"}`, "not valid JSON"},
		"control":         {"{\"a\":\"\n\"}", "not valid JSON"},
		"too deep":        {`{"a":` + strings.Repeat("[", 400) + strings.Repeat("]", 400) + `}`, "deeper than 400"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseRecord(Items, []byte(c.text))
			if CodeOf(err) != Invalid || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want invalid with %q", err, c.want)
			}
		})
	}
	if _, err := ParseRecord(Items, []byte(`{"a":`+strings.Repeat("[", 399)+strings.Repeat("]", 399)+`}`)); err != nil {
		t.Errorf("400 levels: %v", err)
	}
}
