package process

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/go-hclog"
)

// maxShown is how much of one text of a plugin is logged.
const maxShown = 4 << 10

// entry is a log line of a plugin: one of hclog's JSON objects, or any text.
type entry struct {
	level   hclog.Level
	message string
	args    []any
}

// readEntry understands a line as far as it can. Whatever a plugin writes becomes an entry.
func readEntry(line []byte, cut int) entry {
	if cut == 0 {
		if e, ok := readObject(line); ok {
			return e
		}
	}
	text := shown(string(line))
	if cut > 0 {
		text = fmt.Sprintf("%s (%d more bytes)", text, cut)
	}
	return entry{level: levelOf(text), message: text}
}

// readObject reads what hclog writes. An object with another idea of "@message" is text.
func readObject(line []byte) (e entry, ok bool) {
	if len(line) == 0 || line[0] != '{' {
		return e, false
	}
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	var raw map[string]any
	if decoder.Decode(&raw) != nil {
		return e, false
	}
	message, isText := raw["@message"].(string)
	if !isText {
		return e, false
	}
	e.message = shown(message)
	level, _ := raw["@level"].(string)
	if e.level = hclog.LevelFromString(level); e.level == hclog.NoLevel || e.level == hclog.Off {
		e.level = hclog.Info
	}
	if module, _ := raw["@module"].(string); module != "" {
		e.args = append(e.args, "module", shown(module))
	}
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if !strings.HasPrefix(key, "@") {
			e.args = append(e.args, shown(key), shown(plain(raw[key])))
		}
	}
	return e, true
}

func plain(value any) string {
	if text, isText := value.(string); isText {
		return text
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	return string(text)
}

// levelOf takes a text's level from the prefixes that people use.
func levelOf(text string) hclog.Level {
	for _, l := range []hclog.Level{hclog.Trace, hclog.Debug, hclog.Info, hclog.Warn, hclog.Error} {
		if strings.HasPrefix(text, "["+strings.ToUpper(l.String())+"]") {
			return l
		}
	}
	if isPanic(text) {
		return hclog.Error
	}
	return hclog.Info
}

// isPanic says whether a Go program is about to die of what it says.
func isPanic(text string) bool {
	return strings.HasPrefix(text, "panic: ") || strings.HasPrefix(text, "fatal error: ")
}

// shown makes a text fit to be read on a terminal: valid, short, without control characters.
func shown(text string) string {
	if len(text) > maxShown {
		at := maxShown
		for at > maxShown-utf8.UTFMax && !utf8.RuneStart(text[at]) { // no text has more than three such bytes in a row, but a plugin may
			at--
		}
		text = fmt.Sprintf("%s… (%d more bytes)", text[:at], len(text)-at)
	}
	return strings.Map(func(r rune) rune {
		if r != '\t' && r != '\n' && unicode.IsControl(r) {
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

// String is the entry as people read it in an error.
func (e entry) String() string {
	var b strings.Builder
	b.WriteString(e.message)
	for i := 0; i+1 < len(e.args); i += 2 {
		fmt.Fprintf(&b, " %v=%v", e.args[i], e.args[i+1])
	}
	return b.String()
}
