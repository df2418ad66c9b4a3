package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"holdfast/internal/config"
)

// What commands show to people. Everything that came from outside passes through clean: a terminal would obey its control
// characters.

// clean gives text with everything that is not printable escaped.
func clean(text string) string {
	plain := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
	if plain {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

// cleanLines is clean for a text of many lines.
func cleanLines(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString(clean(strings.TrimSuffix(line, "\n")) + "\n")
	}
	return b.String()
}

// brief gives the first line of a text, cut.
func brief(text string, limit int) string {
	first, rest, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(first)
	if len(runes) > limit {
		return clean(string(runes[:limit])) + "..."
	}
	if more && strings.TrimSpace(rest) != "" {
		return clean(first) + "..."
	}
	return clean(first)
}

// valueText gives a JSON value for people: a string without its quotes, everything else as it stands.
func valueText(raw json.RawMessage) string {
	var text string
	if len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		return text
	}
	if string(raw) == "null" {
		return ""
	}
	return string(raw)
}

// table writes rows of cells in columns.
type table struct {
	out   io.Writer
	lines *bytes.Buffer
	cells *tabwriter.Writer
}

func newTable(out io.Writer, head ...string) table {
	lines := &bytes.Buffer{}
	t := table{out, lines, tabwriter.NewWriter(lines, 0, 0, 2, ' ', 0)}
	if len(head) > 0 {
		t.row(head...)
	}
	return t
}

func (t table) row(cells ...string) {
	for i := range cells {
		cells[i] = clean(cells[i])
	}
	fmt.Fprintln(t.cells, strings.Join(cells, "\t"))
}

// flush prints the rows, without the blanks that fill up their last cells.
func (t table) flush() error {
	if err := t.cells.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(t.lines.String()) {
		if _, err := fmt.Fprintln(t.out, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	t.lines.Reset()
	return nil
}

// moment gives a time for people, with its age.
func moment(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Local().Format("2006-01-02 15:04:05 MST") + " (" + ageText(time.Since(at)) + " ago)" //nolint:gosmopolitan // people read their own time
}

func ageText(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return config.FormatDuration(d.Round(time.Second))
	}
	return strconv.Itoa(int(d/(24*time.Hour))) + " days"
}

func sizeText(bytes int64) string {
	size, unit := float64(bytes), 0
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	for size >= 1024 && unit < len(units)-1 {
		size, unit = size/1024, unit+1
	}
	return strings.TrimSuffix(strconv.FormatFloat(size, 'f', 1, 64), ".0") + " " + units[unit]
}

// counted is "1 line", "2 lines".
func counted(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatInt(n, 10) + " " + one + "s"
}

// printJSON prints JSON as it came, indented.
func printJSON(out io.Writer, text []byte) error {
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(text), "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err := b.WriteTo(out)
	return err
}

// printPart prints one member of an answer as it came.
func printPart(in *invocation, answer []byte, member string) error {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(answer, &parts); err != nil {
		return err
	}
	return printJSON(in.stdout, parts[member])
}
