package stock

// How engines compare texts.

import (
	"cmp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// compareUnicodeCI is utf8mb4_unicode_ci as far as it matters here: neither case nor accents count, control characters do not either,
// everything beyond the basic plane is one character, and a shorter text is filled with spaces.
func compareUnicodeCI(a, b string) int {
	return strings.Compare(rank(weigh(a)), rank(weigh(b)))
}

func weigh(text string) string {
	if isPlain(text) {
		return strings.ToLower(strings.TrimRight(text, " "))
	}
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		switch {
		case r > 0xffff:
			b.WriteRune(0xfffd)
		case unicode.Is(unicode.Mn, r), unicode.IsControl(r) && !unicode.IsSpace(r):
		case r == 'ß', r == 'ẞ':
			b.WriteString("ss")
		default:
			b.WriteRune(unicode.ToLower(unicode.ToUpper(r)))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// isPlain says that a text has printable ASCII only.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// compareLocale is the order of en_US.UTF-8 as far as it matters here: marks before digits before letters, case only where all else is
// equal, small letters first.
func compareLocale(a, b string) int {
	return cmp.Or(strings.Compare(rank(a), rank(b)), strings.Compare(b, a))
}

// rank puts marks before digits before letters.
func rank(text string) string {
	var b strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsLetter(r):
			b.WriteByte(3)
		case unicode.IsDigit(r):
			b.WriteByte(2)
		default:
			b.WriteByte(1)
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
