package config

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/hcl/v2"

	"holdfast/ports"
)

// problem makes one error; subject is nil for what does not stand in a file.
func problem(subject *hcl.Range, summary, format string, args ...any) hcl.Diagnostics {
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: summary, Detail: fmt.Sprintf(format, args...), Subject: subject}}
}

// sentence is an error's text as a sentence of its own.
func sentence(err error) string {
	text := err.Error()
	first, width := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[width:]
	if !strings.HasSuffix(text, ".") && !strings.HasSuffix(text, "?") {
		text += "."
	}
	return text
}

func placeIn(r hcl.Range) place {
	return place{source: fmt.Sprintf("%s:%d", r.Filename, r.Start.Line), rng: &r}
}

// from names the origin of a value in a summary, when no line of a file does it.
func (p place) from(summary string) string {
	if p.rng != nil {
		return summary
	}
	return summary + " (from " + p.source + ")"
}

// ordered sorts by place, as a reader goes through the file; what stands in none comes last.
func ordered(diags hcl.Diagnostics) hcl.Diagnostics {
	slices.SortStableFunc(diags, func(a, b *hcl.Diagnostic) int {
		switch {
		case a.Subject == nil || b.Subject == nil:
			return cmp.Compare(sign(a.Subject == nil), sign(b.Subject == nil))
		default:
			return cmp.Or(cmp.Compare(a.Subject.Filename, b.Subject.Filename), cmp.Compare(a.Subject.Start.Byte, b.Subject.Start.Byte))
		}
	})
	return diags
}

func sign(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

// Err gives the errors among the diagnostics as one Invalid error whose text is made for people: for each the file, line
// and column, a snippet and what to do. It is nil when there are none. Err and Explain show no secret.
func (c *Config) Err(diags hcl.Diagnostics) error {
	if !diags.HasErrors() {
		return nil
	}
	return ports.Errorf(ports.Invalid, "", "the configuration cannot be used\n%s", c.Explain(diags))
}

// Explain renders diagnostics:
//
//	holdfast.hcl:3:1: unsupported argument
//	   3 | lissten = "127.0.0.1:8420"
//	     | ^^^^^^^
//	  An argument named "lissten" is not expected here. Did you mean "listen"?
func (c *Config) Explain(diags hcl.Diagnostics) string {
	var out strings.Builder
	for i, d := range ordered(diags) {
		if i > 0 {
			out.WriteByte('\n')
		}
		summary := d.Summary
		if !strings.HasPrefix(summary, "JSON") {
			first, width := utf8.DecodeRuneInString(summary)
			summary = string(unicode.ToLower(first)) + summary[width:]
		}
		if d.Subject != nil && d.Subject.Filename != defaultsName {
			fmt.Fprintf(&out, "%s:%d:%d: ", d.Subject.Filename, d.Subject.Start.Line, d.Subject.Start.Column)
		}
		out.WriteString(summary + "\n")
		if d.Subject != nil {
			out.WriteString(c.snippet(*d.Subject))
		}
		if d.Detail != "" {
			out.WriteString("  " + strings.ReplaceAll(strings.TrimSpace(d.Detail), "\n", "\n  ") + "\n")
		}
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// snippet is the first line of a range with a mark below it; values that may be secret are stars.
func (c *Config) snippet(r hcl.Range) string {
	src, ok := c.sources[r.Filename]
	if !ok || r.Filename == defaultsName || r.Start.Byte > len(src) {
		return ""
	}
	begin := bytes.LastIndexByte(src[:r.Start.Byte], '\n') + 1
	end := len(src)
	if n := bytes.IndexByte(src[begin:], '\n'); n >= 0 {
		end = begin + n
	}
	secrets := c.secretSpans(r.Filename, src)
	var line, mark strings.Builder
	for at := begin; at < end; {
		text, width := string(src[at]), 1
		if s, masked := covering(secrets, at); masked {
			text, width = hidden, min(s.end, end)-at
		} else if _, n := utf8.DecodeRune(src[at:end]); n > 1 {
			text, width = string(src[at:at+n]), n
		}
		sign := " "
		if at+width > r.Start.Byte && at < max(r.End.Byte, r.Start.Byte+1) {
			sign = "^"
		}
		if text == "\t" {
			text = " "
		}
		if text != "\r" {
			line.WriteString(text)
			mark.WriteString(strings.Repeat(sign, utf8.RuneCountInString(text)))
		}
		at += width
	}
	marks := strings.TrimRight(mark.String(), " ")
	if r.Start.Byte >= end { // the range begins at the line's end
		marks = strings.Repeat(" ", mark.Len()) + "^"
	}
	number := fmt.Sprintf("%5d", r.Start.Line)
	return fmt.Sprintf("%s | %s\n%s | %s\n", number, strings.TrimRight(line.String(), " "), strings.Repeat(" ", len(number)), marks)
}
