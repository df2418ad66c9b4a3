package ports_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

func TestATimeBecomesAKeyThatSortsAsItDoes(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		"2026-11-30T02:12:14Z":                "2026-11-30T02:12:14.000000000Z",
		"2026-11-30T02:12:14.8Z":              "2026-11-30T02:12:14.800000000Z",
		"2026-11-30T02:12:14.80Z":             "2026-11-30T02:12:14.800000000Z",
		"2026-11-30T02:12:14.801Z":            "2026-11-30T02:12:14.801000000Z",
		"2026-11-30T02:12:14.8012Z":           "2026-11-30T02:12:14.801200000Z",
		"2026-11-30T02:12:14.80123Z":          "2026-11-30T02:12:14.801230000Z",
		"2026-11-30T02:12:14.801234Z":         "2026-11-30T02:12:14.801234000Z",
		"2026-11-30T02:12:14.8012345Z":        "2026-11-30T02:12:14.801234500Z",
		"2026-11-30T02:12:14.80123456Z":       "2026-11-30T02:12:14.801234560Z",
		"2026-11-30T02:12:14.801234567Z":      "2026-11-30T02:12:14.801234567Z",
		"2026-11-30T02:12:14.8012345678Z":     "2026-11-30T02:12:14.801234567Z",
		"2026-11-30T04:12:14.801+02:00":       "2026-11-30T02:12:14.801000000Z",
		"2026-11-29T21:42:14.801-04:30":       "2026-11-30T02:12:14.801000000Z",
		"2026-12-31T23:59:59.999999999-00:01": "2027-01-01T00:00:59.999999999Z",
		"0000-01-01T00:00:00Z":                "0000-01-01T00:00:00.000000000Z",
		"9999-12-31T23:59:59.999999999Z":      "9999-12-31T23:59:59.999999999Z",

		"":                          "",
		"now":                       "",
		"2026-11-30":                "",
		"2026-11-30 02:12:14Z":      "",
		"2026-11-30T02:12:14":       "",
		"2026-11-30T25:12:14Z":      "",
		"2026-13-30T02:12:14Z":      "",
		"2026-02-30T02:12:14Z":      "",
		"2026-11-30T02:12:14Z ":     "",
		"1796004734801":             "",
		"9999-12-31T23:59:59-01:00": "", // the year 10000
		"0000-01-01T00:00:00+01:00": "", // before the year 0
	}
	for text, want := range cases {
		got, ok := ports.TimeKey(text)
		if got != want || ok != (want != "") {
			t.Errorf("%q has the key %q, %v; want %q", text, got, ok, want)
		}
	}
}

func TestKeysOfTimesSortBytewise(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 30, 2, 0, 0, 0, time.FixedZone("", 3600))
	var keys []string
	for _, later := range []time.Duration{0, 1, time.Microsecond, time.Millisecond, time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		key := ports.KeyOfTime(at.Add(later))
		if same, ok := ports.TimeKey(at.Add(later).Format(time.RFC3339Nano)); !ok || same != key {
			t.Errorf("%s is read back as %s", key, same)
		}
		keys = append(keys, key)
	}
	if !slices.IsSortedFunc(keys, strings.Compare) {
		t.Errorf("%s do not sort", keys)
	}
}
