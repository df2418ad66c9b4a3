package process

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
)

func say(log *journal, text string) *words {
	w := &words{log: newAllowance(log.logger(hclog.Trace))}
	split := &lines{emit: w.take}
	// In small pieces, as a pipe gives them.
	_, _ = io.CopyBuffer(struct{ io.Writer }{split}, struct{ io.Reader }{strings.NewReader(text)}, make([]byte, 7))
	split.flush()
	return w
}

func TestLinesOfAPluginInTheLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ line, want string }{
		{`{"@level":"warn","@message":"slow","@timestamp":"x","@module":"db","ms":12.50,"a":[1,{"b":null}]}`, "[WARN]  tape: slow: module=db a=\"[1,{\\\"b\\\":null}]\" ms=12.50\n"},
		{`{"@level":"shout","@message":"m"}`, "[INFO]  tape: m\n"},
		{`{"@message":5}`, "[INFO]  tape: {\"@message\":5}\n"},
		{`{"@level":5,"@message":"m"}`, "[INFO]  tape: m\n"},
		{`["@message"]`, "[INFO]  tape: [\"@message\"]\n"},
		{"[ERROR] out of tape", "[ERROR] tape: [ERROR] out of tape\n"},
		{"panic: torn\ngoroutine 1", "[ERROR] tape: panic: torn\n[ERROR] tape: goroutine 1\n"},
		{"plain\r\n\nnext", "[INFO]  tape: plain\n[INFO]  tape: next\n"},
		{strings.Repeat("\xa8", maxShown+4), "[INFO]  tape: \uFFFD… (8 more bytes)\n"},
		{"\x1b[31mred\x00\xff", "[INFO]  tape: \uFFFD[31mred\uFFFD\uFFFD\n"},
	} {
		log := &journal{}
		say(log, c.line)
		if got := log.String(); got != c.want {
			t.Errorf("%q becomes\n%q, want\n%q", c.line, got, c.want)
		}
	}
}

func TestAnEndlessLineIsCutAndDoesNotGrow(t *testing.T) {
	t.Parallel()
	log := &journal{}
	split := &lines{emit: (&words{log: newAllowance(log.logger(hclog.Info))}).take}
	piece := bytes.Repeat([]byte{'x'}, 1<<20)
	for range 10 {
		_, _ = split.Write(piece)
	}
	if cap(split.held) > 2*maxLine {
		t.Errorf("%d bytes are held", cap(split.held))
	}
	_, _ = split.Write([]byte("\nnext\n"))
	if got := log.String(); len(got) > 2*maxShown || !strings.HasSuffix(got, "tape: next\n") || !strings.Contains(got, fmt.Sprintf("(%d more bytes)", 10<<20-maxLine)) {
		t.Errorf("the log has %d bytes, ending in %q", len(got), got[max(0, len(got)-100):])
	}
}

func TestTheReasonOfADeathStaysAmongTheLastWords(t *testing.T) {
	t.Parallel()
	w := say(&journal{}, "panic: torn\n"+strings.Repeat("goroutine\n", 100))
	said := w.said()
	if len(said) != lastLines+1 || said[0] != "panic: torn" {
		t.Errorf("%d lines, the first %q", len(said), said[0])
	}
	if said := say(&journal{}, "a\nb\n").said(); !slices.Equal(said, []string{"a", "b"}) {
		t.Errorf("said %q", said)
	}
}

func TestAFloodOfLinesIsCounted(t *testing.T) {
	t.Parallel()
	log := &journal{}
	now := time.Now()
	a := &allowance{log: log.logger(hclog.Info), now: func() time.Time { return now }}
	for range 5 * allowedLines {
		a.line(hclog.Info, "again")
		a.line(hclog.Debug, "not shown")
	}
	if n := strings.Count(log.String(), "again"); n != allowedLines {
		t.Errorf("%d lines are logged at once", n)
	}
	now = now.Add(allowedTime)
	a.line(hclog.Info, "next")
	a.end()
	if want := fmt.Sprintf("[WARN]  tape: the plugin logs too much, lines were left out: count=%d\n[INFO]  tape: next\n", 4*allowedLines); !strings.HasSuffix(log.String(), want) {
		t.Errorf("the log ends in %q", log.String()[max(0, len(log.String())-200):])
	}
}

func FuzzWhateverIsWrittenToStderr(f *testing.F) {
	for _, seed := range []string{`{"@message":5}`, `{"@level":[],"@message":{}}`, `{"@timestamp":1}`, "[]\n{}\nnull", "\x00\xff\n", `{"@message":"m","@level":"off"}`, "panic: \n", strings.Repeat("\xa8", 2*maxShown)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		log := &journal{}
		w := say(log, string(text))
		if !utf8.ValidString(log.String()) {
			t.Errorf("the log is not valid UTF-8: %q", log)
		}
		if len(w.said()) > lastLines+1 {
			t.Errorf("%d lines are kept", len(w.said()))
		}
	})
}
