package ports

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// JSON strings: how far a plain run goes, what an escape is, and the two ways between a string and its text.

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
	if !bytes.Contains(inner, []byte{'\\'}) {
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
	for i := range len(text) {
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
