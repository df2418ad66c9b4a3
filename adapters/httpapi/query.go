package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agext/levenshtein"

	"holdfast/ports"
)

// Limits of a list.
const (
	defaultLimit = 50
	maxLimit     = 500
)

// params reads query parameters. Each getter notes its name; done then refuses what nobody asked for, since a filter that is
// silently ignored shows too much. The first fault wins.
type params struct {
	values url.Values
	asked  []string
	err    error
}

func paramsOf(r *http.Request) *params {
	values, err := url.ParseQuery(r.URL.RawQuery)
	p := &params{values: values}
	if err != nil {
		p.fault(ports.Errorf(ports.Invalid, "", "the query is not well formed: %v", err))
	}
	return p
}

func (p *params) fault(err error) {
	if p.err == nil {
		p.err = err
	}
}

// text gives a parameter that stands once, "" without it.
func (p *params) text(name string) string {
	p.asked = append(p.asked, name)
	given := p.values[name]
	if len(given) > 1 {
		p.fault(ports.InField(ports.Invalid, name, "stands %d times; give it once", len(given)))
	}
	if len(given) == 0 {
		return ""
	}
	if !utf8.ValidString(given[0]) {
		p.fault(ports.InField(ports.Invalid, name, "is not valid UTF-8"))
	}
	return given[0]
}

// list gives a parameter that may stand often, and hold several values with commas between them.
func (p *params) list(name string) (all []string) {
	p.asked = append(p.asked, name)
	for _, given := range p.values[name] {
		for value := range strings.SplitSeq(given, ",") {
			if value = strings.TrimSpace(value); value != "" {
				all = append(all, value)
			}
		}
	}
	return all
}

func (p *params) flag(name string) bool {
	switch text := p.text(name); text {
	case "", "false", "0":
		return false
	case "true", "1":
		return true
	default:
		p.fault(ports.InField(ports.Invalid, name, "%q is neither true nor false", printable(text)))
		return false
	}
}

func (p *params) limit() int {
	text := p.text("limit")
	if text == "" {
		return defaultLimit
	}
	n, err := strconv.Atoi(text)
	switch {
	case err != nil || n < 1:
		p.fault(ports.InField(ports.Invalid, "limit", "%q is not a number from 1 to %d", printable(text), maxLimit))
	case n > maxLimit:
		p.fault(&ports.Error{Code: ports.Invalid, Field: "limit", Limit: maxLimit, Size: int64(n),
			Message: fmt.Sprintf("%d is more than %d; follow Cursor for the rest", n, maxLimit)})
	}
	return n
}

// moment reads a time: RFC 3339, or a duration back from now.
func (p *params) moment(name string) (at time.Time, given bool) {
	text := p.text(name)
	if text == "" {
		return at, false
	}
	if back, err := time.ParseDuration(text); err == nil {
		return time.Now().Add(-back), true
	}
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		p.fault(ports.InField(ports.Invalid, name, `%q is no time; write 2026-01-31T12:00:00Z, or a duration back from now such as 24h`, printable(text)))
	}
	return at, err == nil
}

func (p *params) cursor() *ports.Cursor {
	cursor, err := ports.ParseCursor(p.text("cursor"))
	if err != nil {
		p.fault(err)
	}
	return cursor
}

// desc says whether the newest comes first.
func (p *params) desc(otherwise bool) bool {
	switch text := p.text("order"); text {
	case "":
		return otherwise
	case "asc", "desc":
		return text == "desc"
	default:
		p.fault(ports.InField(ports.Invalid, "order", "%q is neither asc nor desc", printable(text)))
		return otherwise
	}
}

// done gives the first fault, a parameter that nobody asked for included.
func (p *params) done() error {
	for name := range p.values {
		if !slices.Contains(p.asked, name) {
			p.fault(ports.InField(ports.Invalid, printable(name), "is no parameter here%s", hint(name, p.asked)))
		}
	}
	return p.err
}

// hint is the end of a sentence about a wrong name: what was meant, or else what there is.
func hint(given string, known []string) string {
	best, least := "", 3
	for _, name := range known {
		if d := levenshtein.Distance(strings.ToLower(given), strings.ToLower(name), nil); d < least && d < len(name) {
			best, least = name, d
		}
	}
	if best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; there is " + strings.Join(known, ", ")
}
