package stock

// Filters, and the statements that they become.

import (
	"database/sql"
	"regexp"
	"strconv"
	"strings"
)

// query is what a list is asked for.
type query struct {
	terms    []term
	sort     []order
	begin    int64
	cap      int64 // 0: everything
	distinct bool
	fields   []string // all when empty
}

// term is one condition, or a parenthesis.
type term struct {
	column    string
	operator  string
	value     string
	list      []string // of an FBL or FBD
	isList    bool
	connector string
	parameter string
}

type order struct {
	column     string
	descending bool
}

var operators = map[string]string{
	"EQ": "=", "NE": "!=", "GT": ">", "GE": ">=", "LT": "<", "LE": "<=", "LK": "LIKE", "NLK": "NOT LIKE",
	"IN": "IS NULL", "NN": "IS NOT NULL", "INN": "IN", "NIN": "NOT IN",
}

// filter adds what a filter's text says. Everything that is not understood is left out, down to the whole text.
func (q *query) filter(text string) {
	parts := strings.Split(text, "~")
	if len(parts) < 4 {
		return
	}
	for len(parts) > 0 {
		var stanza [4]string
		n := copy(stanza[:], parts)
		parts = parts[n:]
		q.stanza(stanza[0], stanza[1], stanza[2], stanza[3])
	}
}

func (q *query) stanza(instruction, field, operator, val string) {
	is, known := operators[operator]
	if !known {
		is = "="
	}
	add := func(t term) { q.terms = append(q.terms, t) }
	switch instruction {
	case "FBV":
		add(term{column: field, operator: is, value: val, connector: "AND", parameter: field})
	case "FBVOR":
		add(term{column: field, operator: is, value: val, connector: "OR", parameter: field})
	case "FBL":
		add(term{column: field, operator: is, list: strings.Split(val, ","), isList: true, connector: "AND", parameter: field})
	case "FBLOR":
		add(term{column: field, operator: is, list: strings.Split(val, ","), isList: true, connector: "OR", parameter: field})
	case "FBD":
		add(term{column: "DATE(" + field + ")", operator: is, list: strings.Split(val, ","), isList: true, connector: "AND", parameter: field})
	case "FBDOR":
		add(term{column: "DATE(" + field + ")", operator: is, list: strings.Split(val, ","), isList: true, connector: "OR", parameter: field})
	case "FSF":
		q.sort = append(q.sort, order{field, operator == "DESC"})
	case "FOP":
		add(term{operator: "(", connector: "AND"})
	case "FOPOR":
		add(term{operator: "(", connector: "OR"})
	case "FCP":
		add(term{operator: ")"})
	case "FDST":
		q.distinct = true
	}
}

// by is the condition of the routes that compare one column.
func by(column, text string) term {
	return term{column: column, operator: "=", value: text, connector: "AND", parameter: "RequestByField"}
}

// equals is a condition of an endpoint's own.
func equals(column, text, parameter string) term {
	return term{column: column, operator: "=", value: text, connector: "AND", parameter: parameter}
}

// keys counts the values that a query compares with.
func (q *query) keys() (n int) {
	for _, t := range q.terms {
		n += max(len(t.list), 1)
	}
	return n
}

// statement is a query as SQL, with its parameters as the answer of a failure shows them.
type statement struct {
	text       string
	parameters object
	args       []any
	refused    *failure // why the engine does not take it
}

// statement writes a query for a table. what is the field list; COUNT(*) for a count.
func (d *Databeacon) statement(t *table, e *endpoint, q query, counting bool) statement {
	s := &statement{}
	where := d.where(s, t, e, q.terms)
	fields := d.engine.from(t)
	if len(q.fields) > 0 {
		_, from, _ := strings.Cut(fields, " FROM ")
		var names []string
		for _, f := range q.fields {
			if t.column(f) == nil {
				s.refuse(d.engine.noColumn(t, f, inFields))
			}
			names = append(names, d.engine.quoted(t, f, false))
		}
		fields = strings.Join(names, ", ") + " FROM " + from
	}
	if counting {
		_, from, _ := strings.Cut(fields, " FROM ")
		s.text = "SELECT COUNT(*) AS RowCount FROM " + from + where + ";"
		return *s
	}
	start := "SELECT "
	if q.distinct {
		start = "SELECT DISTINCT "
	}
	s.text = start + fields + where + d.order(s, t, q)
	if q.cap > 0 {
		switch {
		case q.begin == 0 && q.cap == defaultCap:
			s.text += " LIMIT " + strconv.FormatInt(q.cap, 10)
		case d.options.Manner == MySQL:
			s.text += " LIMIT " + strconv.FormatInt(q.begin, 10) + ", " + strconv.FormatInt(q.cap, 10)
		default:
			s.text += " LIMIT " + strconv.FormatInt(q.cap, 10) + " OFFSET " + strconv.FormatInt(q.begin, 10)
		}
	}
	s.text += ";"
	return *s
}

func (s *statement) refuse(f *failure) {
	if s.refused == nil {
		s.refused = f
	}
}

func (s *statement) bind(name, text string, bound any) string {
	s.parameters = append(s.parameters, member{name, of(text)})
	s.args = append(s.args, sql.Named(name, bound))
	return ":" + name
}

// where writes the conditions; soft-deleted rows are left out unless a condition names their column.
func (d *Databeacon) where(s *statement, t *table, e *endpoint, terms []term) string {
	terms = append([]term{}, terms...)
	ours := -1
	if deleted := deletedColumn(e); deleted != "" {
		named := false
		for _, x := range terms {
			named = named || x.column == deleted
		}
		if !named {
			ours = len(terms)
			terms = append(terms, term{column: deleted, operator: "=", value: "0", connector: "AND", parameter: "Deleted"})
		}
	}
	if len(terms) == 0 {
		return ""
	}
	text, opened, depth := "", false, 0
	for i, x := range terms {
		if x.operator != ")" && text != "" && !opened {
			text += " " + x.connector
		}
		opened = x.operator == "("
		switch x.operator {
		case "(":
			text += " ("
			depth++
			continue
		case ")":
			text += " )"
			if depth--; depth < 0 || strings.HasSuffix(text, "( )") {
				s.refuse(d.engine.syntax(")"))
			}
			continue
		}
		text += " " + d.condition(s, t, x, i, i == ours)
	}
	if depth > 0 {
		s.refuse(d.engine.syntax(";"))
	}
	return " WHERE" + text
}

func (d *Databeacon) condition(s *statement, t *table, x term, at int, ours bool) string {
	c := t.column(x.column)
	name := x.parameter + "_w" + strconv.Itoa(at)
	left := d.engine.quoted(t, x.column, ours) + " " + x.operator
	if c == nil {
		s.refuse(d.engine.noColumn(t, x.column, inWhere))
		s.parameters = append(s.parameters, member{name, of(x.value)})
		return left + " :" + name
	}
	convert := func(text string) any {
		v, f := d.engine.key(c, text)
		if f != nil {
			s.refuse(f)
		}
		return v
	}
	switch x.operator {
	case "IS NOT NULL":
		return left
	case "IS NULL":
		if d.options.Manner == SQLite {
			s.refuse(d.engine.syntax(":" + name)) // the dialect puts a parameter there all the same
		}
		return left
	case "IN", "NOT IN":
		values := x.list
		if !x.isList {
			values = []string{x.value}
		}
		var places []string
		for i, v := range values {
			places = append(places, s.bind(name+"_"+strconv.Itoa(i), v, convert(v)))
		}
		return left + " ( " + strings.Join(places, ", ") + " )"
	}
	text := x.value
	if x.isList {
		if len(x.list) != 1 {
			s.refuse(d.engine.listed(at+1, x.list))
		}
		text = x.list[0]
	}
	if ours {
		s.parameters = append(s.parameters, member{name, of(0)})
		s.args = append(s.args, sql.Named(name, 0))
		return left + " :" + name
	}
	return left + " " + s.bind(name, text, convert(text))
}

func (d *Databeacon) order(s *statement, t *table, q query) string {
	var by []string
	for _, o := range q.sort {
		if t.column(o.column) == nil {
			s.refuse(d.engine.noColumn(t, o.column, inOrder))
		}
		name := d.engine.quoted(t, o.column, false)
		if o.descending {
			name += " DESC"
		}
		by = append(by, name)
	}
	if len(by) == 0 {
		return ""
	}
	return " ORDER BY " + strings.Join(by, ", ")
}

// heap puts the rows of a Postgres table in the order in which they lie there, wherever the query leaves it open: a row that was
// updated lies at the end.
func (d *Databeacon) heap(text string) string {
	if d.options.Manner != Postgres || strings.HasPrefix(text, "SELECT DISTINCT") {
		return text
	}
	body, limit := strings.TrimSuffix(text, ";"), ""
	if m := limited.FindStringIndex(body); m != nil {
		body, limit = body[:m[0]], body[m[0]:]
	}
	if strings.Contains(body, " ORDER BY ") {
		return body + ", rowid" + limit
	}
	return body + " ORDER BY rowid" + limit
}

var limited = regexp.MustCompile(` LIMIT \d+( OFFSET \d+)?$`)

func deletedColumn(e *endpoint) string {
	for _, c := range e.columns {
		if c.MeadowType == "Deleted" {
			return c.Name
		}
	}
	return ""
}

// shown is what an answer tells of a statement that failed or found nothing.
func (s *statement) shown() []member {
	rebuilt := s.text
	parameters := s.parameters
	if parameters == nil {
		parameters = object{}
	}
	for _, p := range parameters {
		rebuilt = regexp.MustCompile(":"+regexp.QuoteMeta(p.name)+`\b`).ReplaceAllLiteralString(rebuilt, p.value.text())
	}
	return []member{{"Query", of(s.text)}, {"QueryParameters", value{raw: parameters.json()}}, {"RebuiltQueryString", of(rebuilt)}}
}
