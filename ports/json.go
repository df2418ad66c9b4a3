package ports

import (
	"strconv"
	"unicode/utf8"
)

// Records travel as their callers' bytes. This scanner looks at them once: it checks that a text is JSON, valid UTF-8 and
// not nested too deeply, and tells where the members of its top level stand. It decodes nothing and copies nothing.

// Member is one member of an object. Value is its JSON as it was written, without white space around it.
type Member struct {
	Name  string
	Value []byte
}

// ScanObject checks that text is one JSON object, at most depth deep (the object itself being 1), and calls visit for each
// of its members in order. name is the JSON string with its quotes. It fails with Invalid; visit's error ends the scan.
func ScanObject(text []byte, depth int, visit func(name, value []byte) error) error {
	if visit == nil {
		return ScanNested(text, depth, nil, nil)
	}
	return ScanNested(text, depth, nil, func(_ int, name, value []byte) error { return visit(name, value) })
}

// ScanNested is ScanObject that looks into members on its way. Before a member that is an object, enter says whether its own
// members are visited too; they come before it, with a level that is higher by 1. The members of text have level 1.
func ScanNested(text []byte, depth int, enter func(level int, name []byte) bool, visit func(level int, name, value []byte) error) error {
	s := scanner{text: text}
	if !utf8.Valid(text) {
		return s.fault("is not valid UTF-8 at byte %d", firstInvalid(text))
	}
	s.space()
	if s.at >= len(text) || text[s.at] != '{' {
		return s.fault("is not a JSON object")
	}
	if err := s.object(depth, 1, &visitor{enter, visit}); err != nil {
		return err
	}
	s.space()
	if s.at != len(text) {
		return s.fault("has something behind its end at byte %d", s.at)
	}
	return nil
}

type scanner struct {
	text []byte
	at   int
}

// visitor is who wants to see members. It is no part of the scanner, so that the closures in it stay on their caller's stack.
type visitor struct {
	enter func(level int, name []byte) bool // nil: never
	visit func(level int, name, value []byte) error
}

func (s *scanner) fault(format string, args ...any) error {
	return Errorf(Invalid, "", format, args...)
}

// space is small enough to be inlined where there is none, which is nearly everywhere.
func (s *scanner) space() {
	if s.at < len(s.text) && s.text[s.at] <= ' ' {
		s.spaces()
	}
}

func (s *scanner) spaces() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) broken() error {
	if s.at >= len(s.text) {
		return s.fault("is not valid JSON: it ends too early, at byte %d", len(s.text))
	}
	return s.fault("is not valid JSON at byte %d", s.at)
}

// object passes an object. v sees its members, if there is one.
func (s *scanner) object(depth, level int, v *visitor) error {
	if depth < 1 {
		return &Error{Code: Invalid, Message: "is nested deeper than " + strconv.Itoa(MaxDepth) + " levels", Limit: MaxDepth, Size: MaxDepth + 1}
	}
	s.at++
	s.space()
	if s.at < len(s.text) && s.text[s.at] == '}' {
		s.at++
		return nil
	}
	for {
		s.space()
		from := s.at
		if err := s.str(); err != nil {
			return err
		}
		name := s.text[from:s.at]
		s.space()
		if s.at >= len(s.text) || s.text[s.at] != ':' {
			return s.broken()
		}
		s.at++
		s.space()
		from = s.at
		if err := s.member(name, depth-1, level, v); err != nil {
			return err
		}
		if v != nil && v.visit != nil {
			if err := v.visit(level, name, s.text[from:s.at]); err != nil {
				return err
			}
		}
		more, err := s.next('}')
		if !more {
			return err
		}
	}
}

// member passes a member's value.
func (s *scanner) member(name []byte, depth, level int, v *visitor) error {
	if v != nil && v.enter != nil && s.at < len(s.text) && s.text[s.at] == '{' && v.enter(level, name) {
		return s.object(depth, level+1, v)
	}
	return s.value(depth)
}

func (s *scanner) array(depth int) error {
	if depth < 1 {
		return s.object(depth, 0, nil) // the same refusal
	}
	s.at++
	s.space()
	if s.at < len(s.text) && s.text[s.at] == ']' {
		s.at++
		return nil
	}
	for {
		s.space()
		if err := s.value(depth - 1); err != nil {
			return err
		}
		more, err := s.next(']')
		if !more {
			return err
		}
	}
}

// next passes a comma, or the end of the object or array.
func (s *scanner) next(end byte) (more bool, err error) {
	s.space()
	if s.at >= len(s.text) {
		return false, s.broken()
	}
	switch s.text[s.at] {
	case ',':
		s.at++
		return true, nil
	case end:
		s.at++
		return false, nil
	}
	return false, s.broken()
}

func (s *scanner) value(depth int) error {
	if s.at >= len(s.text) {
		return s.broken()
	}
	switch c := s.text[s.at]; c {
	case '{':
		return s.object(depth, 0, nil)
	case '[':
		return s.array(depth)
	case '"':
		return s.str()
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) error {
	if end := s.at + len(w); end > len(s.text) || string(s.text[s.at:end]) != w {
		return s.broken()
	}
	s.at += len(w)
	return nil
}

func (s *scanner) str() error {
	if s.at >= len(s.text) || s.text[s.at] != '"' {
		return s.broken()
	}
	at := s.at + 1
	for {
		at += plainPrefix(s.text[at:])
		if at >= len(s.text) || s.text[at] < 0x20 {
			s.at = at
			return s.broken()
		}
		if s.text[at] == '"' {
			s.at = at + 1
			return nil
		}
		n := escape(s.text[at:])
		if n == 0 {
			if s.at = at; at+1 == len(s.text) {
				s.at++
			}
			return s.broken()
		}
		at += n
	}
}

func (s *scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > from
}

func (s *scanner) number() error {
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.at < len(s.text) && s.text[s.at] == '0' {
		s.at++
	} else if !s.digits() {
		return s.broken()
	}
	if s.at < len(s.text) && s.text[s.at] == '.' {
		s.at++
		if !s.digits() {
			return s.broken()
		}
	}
	if s.at < len(s.text) && (s.text[s.at] == 'e' || s.text[s.at] == 'E') {
		s.at++
		if s.at < len(s.text) && (s.text[s.at] == '+' || s.text[s.at] == '-') {
			s.at++
		}
		if !s.digits() {
			return s.broken()
		}
	}
	return nil
}

func firstInvalid(text []byte) int {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(text)
}
