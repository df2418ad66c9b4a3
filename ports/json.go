package ports

import (
	"bytes"
	"encoding/binary"
	"math/bits"
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
	s := scanner{text: text}
	if !utf8.Valid(text) {
		return s.fault("is not valid UTF-8 at byte %d", firstInvalid(text))
	}
	s.space()
	if s.at >= len(text) || text[s.at] != '{' {
		return s.fault("is not a JSON object")
	}
	if err := s.object(depth, visit); err != nil {
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

func (s *scanner) object(depth int, visit func(name, value []byte) error) error {
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
		if err := s.value(depth - 1); err != nil {
			return err
		}
		if visit != nil {
			if err := visit(name, s.text[from:s.at]); err != nil {
				return err
			}
		}
		more, err := s.next('}')
		if !more {
			return err
		}
	}
}

func (s *scanner) array(depth int) error {
	if depth < 1 {
		return s.object(depth, nil) // the same refusal
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
		return s.object(depth, nil)
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

// plainPrefix counts the bytes before the first that ends a string, escapes or may not stand in one.
func plainPrefix(b []byte) (n int) {
	const ones, high = 0x0101010101010101, 0x8080808080808080
	for ; len(b)-n >= 8; n += 8 {
		w := binary.LittleEndian.Uint64(b[n:])
		quote, slash := w^(ones*'"'), w^(ones*'\\')
		// The high bit of each byte that is below 0x20, a quote or a backslash; a byte above it may be marked too much.
		if stop := ((w-ones*0x20)&^w | (quote-ones)&^quote | (slash-ones)&^slash) & high; stop != 0 {
			return n + bits.TrailingZeros64(stop)/8
		}
	}
	for n < len(b) && b[n] >= 0x20 && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// escape gives the length of the escape sequence that b begins with, 0 when it is none.
func escape(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if _, ok := hex4(b[2:]); ok {
			return 6
		}
	}
	return 0
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

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c >= '0' && c <= '9':
			r |= rune(c - '0')
		case c >= 'a' && c <= 'f':
			r |= rune(c-'a') + 10
		case c >= 'A' && c <= 'F':
			r |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return r, true
}

// Unquote decodes a valid JSON string, quotes included. whole is false when it has a lone surrogate, which no UTF-8 text
// can hold; U+FFFD stands in its place then.
func Unquote(quoted []byte) (text string, whole bool) {
	inner := quoted[1 : len(quoted)-1]
	i := bytes.IndexByte(inner, '\\')
	if i < 0 {
		return string(inner), true
	}
	whole = true
	out := make([]byte, 0, len(inner))
	for i := 0; i < len(inner); {
		if inner[i] != '\\' {
			j := bytes.IndexByte(inner[i:], '\\')
			if j < 0 {
				j = len(inner) - i
			}
			out = append(out, inner[i:i+j]...)
			i += j
			continue
		}
		switch c := inner[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r, _ := hex4(inner[i+2:])
			i += 4
			if r >= 0xD800 && r < 0xE000 {
				low, ok := rune(0), false
				if r < 0xDC00 && len(inner) >= i+8 && inner[i+2] == '\\' && inner[i+3] == 'u' {
					low, ok = hex4(inner[i+4:])
				}
				if ok && low >= 0xDC00 && low < 0xE000 {
					r = (r-0xD800)<<10 | (low - 0xDC00) + 0x10000
					i += 6
				} else {
					r, whole = utf8.RuneError, false
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		i += 2
	}
	return string(out), whole
}

// AppendQuoted appends text as JSON.stringify writes it: only the quote, the backslash and control characters are escaped.
// It is the canonical form of a string column.
func AppendQuoted(dst []byte, text string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	dst = append(dst, text[from:]...)
	return append(dst, '"')
}
