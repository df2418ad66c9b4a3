package config

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// units of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// ParseSize reads a number of bytes: "1073741824", "64MiB", "1 GiB". Units are B, KiB, MiB, GiB and TiB.
func ParseSize(text string) (int64, error) {
	number, factor := strings.TrimSpace(text), int64(1)
	for _, u := range units {
		if before, ok := strings.CutSuffix(number, u.name); ok {
			number, factor = strings.TrimSpace(before), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/factor {
		return 0, fmt.Errorf(`%q is not a size; write a whole number with B, KiB, MiB, GiB or TiB, such as "64MiB"`, text)
	}
	return n * factor, nil
}

// FormatSize gives the shortest exact text that ParseSize reads back.
func FormatSize(bytes int64) string {
	for _, u := range units {
		if bytes != 0 && bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return "0B"
}

// ParseDuration reads a duration such as "250ms", "10s" or "720h".
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf(`%q is not a duration; write numbers with ms, s, m or h, such as "10s" or "720h" (30 days)`, text)
	}
	return d, nil
}

// FormatDuration gives a text that ParseDuration reads back, without the zero parts of time.Duration's own.
func FormatDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
