package bench

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

var (
	rounds   = flag.Int("rounds", 3, "how often each variant is measured")
	long     = flag.Bool("long", os.Getenv("BENCH_LONG") == "1", "lists over a million items too")
	jsonFile = flag.String("json", "", "write the figures to this file too")
)

// figure is one line of the table.
type figure struct {
	Part, Name, Unit string
	Values           []float64 // of each round
	P50, P99         []float64 `json:",omitempty"` // milliseconds, of each round
	Of               string    `json:",omitempty"` // what the ratio is taken of
	Ratios           []float64 `json:",omitempty"`
	Targets          []target  `json:",omitempty"`
}

// target is a promise about one number of a figure.
type target struct {
	What  string // "ratio", "p50", "p99" or "value"
	Least float64
	Most  float64 // 0: no upper bound
}

func (t target) String() string {
	if t.Most > 0 {
		return fmt.Sprintf("%s <= %g", t.What, t.Most)
	}
	return fmt.Sprintf("%s >= %g", t.What, t.Least)
}

func (f *figure) met(t target) bool {
	values := f.Values
	switch t.What {
	case "ratio":
		values = f.Ratios
	case "p50":
		values = f.P50
	case "p99":
		values = f.P99
	}
	m := median(values)
	return m >= t.Least && (t.Most == 0 || m <= t.Most)
}

// report collects figures in the order in which they first came.
type report struct {
	mu      sync.Mutex
	figures []*figure
}

var table report

// add notes one round of a figure.
func (r *report) add(part, name, unit string, value float64) *figure {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.figures, func(f *figure) bool { return f.Part == part && f.Name == name })
	if at < 0 {
		at = len(r.figures)
		r.figures = append(r.figures, &figure{Part: part, Name: name, Unit: unit})
	}
	f := r.figures[at]
	f.Values = append(f.Values, value)
	return f
}

// figure gives one that is there.
func (r *report) figure(part, name string) *figure {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.figures[slices.IndexFunc(r.figures, func(f *figure) bool { return f.Part == part && f.Name == name })]
}

// measured notes one round of a load.
func (r *report) measured(part, name string, m measured) *figure {
	f := r.add(part, name, "/s", m.rate)
	f.P50 = append(f.P50, m.percentile(0.5).Seconds()*1e3)
	f.P99 = append(f.P99, m.percentile(0.99).Seconds()*1e3)
	return f
}

// of notes this round's ratio.
func (f *figure) of(what string, base float64) *figure {
	f.Of = what
	f.Ratios = append(f.Ratios, f.Values[len(f.Values)-1]/base)
	return f
}

func (f *figure) target(t ...target) *figure {
	f.Targets = t
	return f
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

func spread(values []float64, digits int) string {
	if len(values) == 0 {
		return ""
	}
	text := fmt.Sprintf("%.*f", digits, median(values))
	if len(values) > 1 {
		text += fmt.Sprintf(" [%.*f-%.*f]", digits, slices.Min(values), digits, slices.Max(values))
	}
	return text
}

// print writes the figures of a part, and all of them to the file.
func (r *report) print(part string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Printf("\n%s, median of %d rounds [least-most]\n", part, *rounds)
	fmt.Printf("  %-46s %-26s %8s %8s  %-34s %s\n", "", "value", "p50 ms", "p99 ms", "ratio", "target")
	for _, f := range r.figures {
		if f.Part != part {
			continue
		}
		digits := 0
		if median(f.Values) < 10 {
			digits = 2
		}
		var p50, p99, ratio string
		if len(f.P50) > 0 {
			p50, p99 = fmt.Sprintf("%.2f", median(f.P50)), fmt.Sprintf("%.2f", median(f.P99))
		}
		if len(f.Ratios) > 0 {
			ratio = spread(f.Ratios, 2) + " of " + f.Of
		}
		var targets []string
		for _, t := range f.Targets {
			word := "missed"
			if f.met(t) {
				word = "met"
			}
			targets = append(targets, t.String()+" "+word)
		}
		line := fmt.Sprintf("  %-46s %-26s %8s %8s  %-34s %s", f.Name, spread(f.Values, digits)+" "+f.Unit, p50, p99, ratio, strings.Join(targets, ", "))
		fmt.Println(strings.TrimRight(line, " "))
	}
	if *jsonFile == "" {
		return nil
	}
	text, err := json.MarshalIndent(struct {
		At      time.Time
		Figures []*figure
	}{time.Now(), r.figures}, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(*jsonFile, append(text, '\n'), 0o600)
}
