package stock

// How an engine's refusal looks: as a text with a code in a whole answer, and as the members of a JavaScript error in a bulk answer.

import "strings"

// failure is what an engine or an endpoint refuses something with.
type failure struct {
	text   string
	code   string // of the driver; "" for an endpoint's own
	status int    // of an endpoint's own
	own    object // what the driver puts on its errors
}

// fail is an endpoint's own error.
func fail(status int, text string) *failure { return &failure{text: text, status: status} }

// bare is the error as JSON.stringify leaves it.
func (f *failure) bare() object {
	if f.code == "" {
		return object{{"StatusCode", of(f.status)}, {"SuppressSoftwareTrace", of(true)}}
	}
	return f.own
}

// explained is the error in the shape of a whole answer.
func (f *failure) explained() object {
	o := object{{"Error", of(f.text)}}
	if f.code == "" {
		return append(o, member{"StatusCode", of(f.status)})
	}
	return append(o, member{"Code", of(f.code)}, member{"Stack", of("Error: " + f.text + "\n    at ...")})
}

// answer is the status and body of a call that failed. Members of what the endpoint had in hand follow.
func (f *failure) answer(more ...member) answer {
	status := f.status
	if f.code != "" {
		status = 500
	}
	return answer{status: status, body: append(f.explained(), more...).json()}
}

// violated gives the columns of a unique index that SQLite refused a row for, and the column of a null.
func violated(err error) (unique []string, null string) {
	text := err.Error()
	if _, rest, ok := strings.Cut(text, "UNIQUE constraint failed: "); ok {
		rest, _, _ = strings.Cut(rest, " (")
		for name := range strings.SplitSeq(rest, ", ") {
			unique = append(unique, name[strings.LastIndex(name, ".")+1:])
		}
		return unique, ""
	}
	if _, rest, ok := strings.Cut(text, "NOT NULL constraint failed: "); ok {
		rest, _, _ = strings.Cut(rest, " (")
		return nil, rest[strings.LastIndex(rest, ".")+1:]
	}
	return nil, ""
}

// plain takes the dressing of our driver off SQLite's message.
func plain(err error) string {
	text := err.Error()
	for _, prefix := range []string{"SQL logic error: ", "constraint failed: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if i := strings.LastIndex(text, " ("); i > 0 {
		text = text[:i]
	}
	return text
}
