package config

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// span is a range of bytes in a file.
type span struct{ begin, end int }

func covering(spans []span, at int) (span, bool) {
	for _, s := range spans {
		if s.begin <= at && at < s.end {
			return s, true
		}
	}
	return span{}, false
}

// mayShow says whether the value of an attribute can stand in a snippet: those of the host's own settings, and of options
// that a plugin declared as not secret. A misspelt name is not known, so its value does not show.
func (c *Config) mayShow(name string) bool {
	if name == "role" || slices.Contains(hostAttributes, name) {
		return true
	}
	if name == "join" { // a password may stand in the address, where it does not belong
		return false
	}
	for _, s := range settings {
		if s.name == name || s.name == "journal."+name || s.name == "mesh."+name || s.name == "tls."+name {
			return true
		}
	}
	return c.shown[name]
}

// secretSpans finds what a snippet must not show. It reads tokens, because a file that does not parse must not give
// anything away either, and it goes the other way round: all values are hidden but those known to be harmless.
func (c *Config) secretSpans(name string, src []byte) []span {
	if strings.HasSuffix(name, ".json") {
		return c.secretsOfJSON(src)
	}
	tokens, _ := hclsyntax.LexConfig(src, name, hcl.InitialPos)
	var secrets []span
	hide := func(r hcl.Range, text []byte) {
		secrets = append(secrets, span{r.Start.Byte, r.Start.Byte + len(strings.TrimRight(string(text), "\r\n"))})
	}
	// What the walk knows: whether the value that it is in may show, how many brackets are open in it, and whether they
	// are those of env() or file(), whose argument is no secret. A value ends with its line.
	show, depth, call := true, 0, false
	for i, t := range tokens {
		switch t.Type {
		case hclsyntax.TokenQuotedNewline: // an open quote: what follows cannot be told apart any more
			return append(secrets, span{t.Range.Start.Byte - lineBefore(src, t.Range.Start.Byte), len(src)})
		case hclsyntax.TokenOBrack, hclsyntax.TokenOParen:
			depth++
		case hclsyntax.TokenCBrack, hclsyntax.TokenCParen:
			depth = max(depth-1, 0)
			call = call && depth > 0
		case hclsyntax.TokenNewline, hclsyntax.TokenOBrace, hclsyntax.TokenCBrace:
			show = show || depth == 0
		case hclsyntax.TokenComment: // it may hold an older secret
			hide(t.Range, t.Bytes)
			show = show || depth == 0 && strings.HasSuffix(string(t.Bytes), "\n")
		case hclsyntax.TokenIdent:
			switch {
			case follows(tokens, i, hclsyntax.TokenEqual):
				show = c.mayShow(string(t.Bytes))
			case follows(tokens, i, hclsyntax.TokenOParen):
				call = call || string(t.Bytes) == "env" || string(t.Bytes) == "file"
			case startsItem(tokens, i) && follows(tokens, i, hclsyntax.TokenOQuote, hclsyntax.TokenOBrace):
				show = isBlock(string(t.Bytes)) // then labels follow, else a value without its equals sign
			case startsItem(tokens, i): // the rest of a value that fell apart
				show = false
				hide(t.Range, t.Bytes)
			case !show && !call:
				hide(t.Range, t.Bytes)
			}
		case hclsyntax.TokenQuotedLit, hclsyntax.TokenStringLit, hclsyntax.TokenNumberLit, hclsyntax.TokenInvalid, hclsyntax.TokenBadUTF8:
			if !show && !call {
				hide(t.Range, t.Bytes)
			}
		}
	}
	return secrets
}

func follows(tokens hclsyntax.Tokens, i int, wanted ...hclsyntax.TokenType) bool {
	return i+1 < len(tokens) && slices.Contains(wanted, tokens[i+1].Type)
}

// startsItem says whether a token is the first of an attribute or a block.
func startsItem(tokens hclsyntax.Tokens, i int) bool {
	if i == 0 {
		return true
	}
	switch tokens[i-1].Type {
	case hclsyntax.TokenNewline, hclsyntax.TokenComment, hclsyntax.TokenOBrace, hclsyntax.TokenCBrace:
		return true
	}
	return false
}

func isBlock(name string) bool {
	return name == "backend" || name == "token" || name == "journal" || name == "tls" || name == "mesh"
}

// lineBefore counts the bytes between the start of the line and a place in it.
func lineBefore(src []byte, at int) int {
	return at - (bytes.LastIndexByte(src[:at], '\n') + 1)
}

// In the JSON form a name is a string with a colon behind it; every other string, and every word outside of strings, is a
// value of the name before it.
var (
	jsonPart = regexp.MustCompile(`"(?:[^"\\]|\\.)*(?:"|$)|[^\s"{}\[\],:]+|[{}\[\],]`)
	jsonCall = regexp.MustCompile(`^"\$\{(env|file)\(\\"[^"\\]*\\"\)\}"$`)
	jsonName = regexp.MustCompile(`^\s*:`)
)

func (c *Config) secretsOfJSON(src []byte) (secrets []span) {
	show, depth := false, 0
	for _, found := range jsonPart.FindAllIndex(src, -1) {
		text := string(src[found[0]:found[1]])
		quoted := strings.HasPrefix(text, `"`)
		switch {
		case text == "[":
			depth++
		case text == "]":
			depth = max(depth-1, 0)
		case text == "{" || text == "}" || text == ",":
			show = show && depth > 0 // a shown value is a word or a list of words
		case quoted && (strings.Contains(text, "\n") || len(text) == 1 || !strings.HasSuffix(text, `"`)): // an open quote
			return append(secrets, span{found[0] + 1, len(src)})
		case quoted && jsonName.Match(src[found[1]:]):
			show = c.mayShow(strings.Trim(text, `"`))
		case show || jsonCall.MatchString(text) || text == "true" || text == "false" || text == "null":
		case quoted:
			secrets = append(secrets, span{found[0] + 1, found[1] - 1})
		default:
			secrets = append(secrets, span{found[0], found[1]})
		}
	}
	return secrets
}
