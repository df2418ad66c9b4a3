package config_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"holdfast/internal/config"
)

func TestSizesAreReadWithTheirUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"0": 0, "17": 17, "17B": 17, "64MiB": 64 << 20, "1 GiB": 1 << 30, "3KiB": 3072, "8388607TiB": 8388607 << 40,
		"": -1, "-1": -1, "1.5GiB": -1, "1MB": -1, "8388608TiB": -1, "MiB": -1, "0x10": -1,
	} {
		n, err := config.ParseSize(text)
		if want < 0 && err == nil {
			t.Errorf("%q was read as %d", text, n)
		}
		if want >= 0 && (err != nil || n != want) {
			t.Errorf("%q: got %d, %v; want %d", text, n, err, want)
		}
	}
}

func TestWhatIsFormattedReadsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Int64Min(0).Draw(t, "bytes")
		if back, err := config.ParseSize(config.FormatSize(bytes)); err != nil || back != bytes {
			t.Fatalf("%s: got %d, %v", config.FormatSize(bytes), back, err)
		}
		d := time.Duration(rapid.Int64().Draw(t, "duration"))
		if back, err := config.ParseDuration(config.FormatDuration(d)); err != nil || back != d {
			t.Fatalf("%s: got %d, %v", config.FormatDuration(d), back, err)
		}
	})
	for d, want := range map[time.Duration]string{
		8760 * time.Hour: "8760h", 90 * time.Second: "1m30s", 10 * time.Minute: "10m", 20 * time.Second: "20s", 0: "0s", 61 * time.Minute: "1h1m",
	} {
		if got := config.FormatDuration(d); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
