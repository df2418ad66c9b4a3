package stock

// The routes of the REST service.

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// rest answers one request, and says what it would have cost.
func (d *Databeacon) rest(method, path string, body []byte) (answer, cost) {
	path, _, _ = strings.Cut(path, "?")
	path, _, _ = strings.Cut(path, "#")
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, raw := range parts {
		plain, err := url.PathUnescape(raw)
		if err != nil || !utf8.ValidString(plain) {
			return coded(http.StatusNotFound, "ResourceNotFound", path+" does not exist"), nothing
		}
		parts[i] = plain
	}
	e, plural, rest := d.route(parts)
	if method == http.MethodGet {
		if e != nil {
			if a, c, ok := d.get(e, plural, rest); ok {
				return a, c
			}
		}
		return nowhere(path), nothing
	}
	if e != nil {
		if a, c, ok := d.write(e, method, plural, rest, body); ok {
			return a, c
		}
	}
	a := coded(http.StatusMethodNotAllowed, "MethodNotAllowed", method+" is not allowed")
	if e != nil {
		a.headers = object{{"allow", of("DELETE, GET, POST, PUT")}}
	}
	return a, nothing
}

// route finds the endpoint of a path. Several can fit where a table's name ends in an s; a whole name goes first. An empty part, as a
// slash at the end makes one, fits nowhere.
func (d *Databeacon) route(parts []string) (e *endpoint, name string, rest []string) {
	if len(parts) < 3 {
		return nil, "", nil
	}
	for _, suffix := range []string{"", "s", "Select"} {
		table, ok := strings.CutSuffix(parts[2], suffix)
		if !ok {
			continue
		}
		if e = d.mounts["/"+parts[0]+"/"+parts[1]+"/"+table]; e != nil && !slices.Contains(parts, "") {
			return e, suffix, parts[3:]
		}
	}
	return nil, "", nil
}

// get answers a GET; ok is false where no route fits.
func (d *Databeacon) get(e *endpoint, name string, rest []string) (a answer, c cost, ok bool) {
	switch name {
	case "":
		return d.getOne(e, rest)
	case "s":
		return d.getMany(e, rest)
	}
	q, left := page(rest)
	if len(left) != 0 {
		return answer{}, nothing, false
	}
	a, c = d.selectList(e, q)
	return a, c, true
}

func (d *Databeacon) getOne(e *endpoint, rest []string) (a answer, c cost, ok bool) {
	switch {
	case len(rest) == 1 && rest[0] == "Schema":
		return done(d.jsonSchema(e)), lookUp, true
	case len(rest) == 1 && rest[0] != "":
		a, c = d.byID(e, rest[0])
		return a, c, true
	case len(rest) == 2 && rest[0] == "Schema" && rest[1] == "New":
		return done(defaults(e).json()), lookUp, true
	case len(rest) == 2 && rest[0] == "Max":
		a, c = d.largest(e, rest[1])
		return a, c, true
	case len(rest) == 2 && rest[0] == "Undelete":
		a, c = d.undelete(e, rest[1])
		return a, c, true
	}
	return answer{}, nothing, false
}

func (d *Databeacon) getMany(e *endpoint, rest []string) (a answer, c cost, ok bool) {
	if len(rest) > 0 {
		switch rest[0] {
		case "By":
			if len(rest) == 3 || len(rest) == 5 {
				q, _ := page(rest[3:])
				q.terms = []term{by(rest[1], rest[2])}
				a, c = d.list(e, q)
				return a, c, true
			}
			return answer{}, nothing, false
		case "Count":
			return d.getCount(e, rest[1:])
		case "Lite", "LiteExtended", "Distinct":
			return d.getReduced(e, rest)
		}
	}
	q, left := page(rest)
	if len(left) != 0 {
		return answer{}, nothing, false
	}
	a, c = d.list(e, q)
	return a, c, true
}

func (d *Databeacon) getCount(e *endpoint, rest []string) (a answer, c cost, ok bool) {
	var q query
	switch {
	case len(rest) == 0:
	case len(rest) == 2 && rest[0] == "FilteredTo":
		q.filter(rest[1])
	case len(rest) == 3 && rest[0] == "By":
		q.terms = []term{by(rest[1], rest[2])}
	default:
		return answer{}, nothing, false
	}
	a, c = d.count(e, q)
	return a, c, true
}

func (d *Databeacon) getReduced(e *endpoint, rest []string) (a answer, c cost, ok bool) {
	var columns []string
	behind := rest[1:]
	if rest[0] != "Lite" {
		if len(behind) == 0 {
			return answer{}, nothing, false
		}
		columns, behind = strings.Split(behind[0], ","), behind[1:]
	}
	q, left := page(behind)
	if len(left) != 0 {
		return answer{}, nothing, false
	}
	if rest[0] == "Distinct" {
		a, c = d.distinctList(e, q, columns)
	} else {
		a, c = d.liteList(e, q, columns)
	}
	return a, c, true
}

// defaultCap is the page when nobody asks for one.
const defaultCap = 250

// page reads what may end a list's path: a filter, a begin and a cap. What does not belong there is left.
func page(rest []string) (q query, left []string) {
	q.cap = defaultCap
	if len(rest) >= 2 && rest[0] == "FilteredTo" {
		q.filter(rest[1])
		rest = rest[2:]
	}
	if len(rest) == 2 {
		q.begin, q.cap = max(leading(rest[0]), 0), max(leading(rest[1]), 0)
		return q, nil
	}
	return q, rest
}

// leading is JavaScript's parseInt, with 0 for what is no number.
func leading(text string) int64 {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[end] == '-' || text[end] == '+')) {
		end++
	}
	n, err := strconv.ParseInt(text[:end], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
