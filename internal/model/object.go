package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Member is one member of an object, its value as it was written.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Object is a JSON object whose members keep their order and their bytes.
type Object []Member

// ParseObject reads one object. A member that stands twice, a name that no text can hold, and bytes that are not UTF-8 are
// errors.
func ParseObject(text []byte) (Object, error) {
	if !utf8.Valid(text) {
		return nil, errors.New("is not valid UTF-8")
	}
	if !json.Valid(text) {
		return nil, errors.New("is not valid JSON")
	}
	text = bytes.TrimSpace(text)
	if text[0] != '{' {
		return nil, errors.New("is not an object")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil, err
	}
	o := Object{}
	for d.More() {
		before := d.InputOffset()
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name := token.(string)
		if loneSurrogate(text[before:d.InputOffset()]) {
			return nil, fmt.Errorf("has the name %q, with a lone surrogate", name)
		}
		if o.Get(name) != nil {
			return nil, fmt.Errorf("has %q twice", name)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, err
		}
		o = append(o, Member{Name: name, Value: value})
	}
	return o, nil
}

// MustParse is ParseObject for texts that a test wrote itself.
func MustParse(text string) Object {
	o, err := ParseObject([]byte(text))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", text, err))
	}
	return o
}

// loneSurrogate says that a JSON string has half of a surrogate pair: encoding/json puts U+FFFD in its place, which is not
// what stood there unless the text has it itself.
func loneSurrogate(quoted []byte) bool {
	var text string
	if json.Unmarshal(bytes.TrimLeft(quoted, " \t\r\n,"), &text) != nil {
		return false
	}
	own := strings.Count(string(quoted), "\uFFFD") + strings.Count(strings.ToLower(string(quoted)), `\ufffd`)
	return strings.Count(text, "\uFFFD") > own
}

// Get gives a member's value, nil when it is missing.
func (o Object) Get(name string) json.RawMessage {
	for _, m := range o {
		if m.Name == name {
			return m.Value
		}
	}
	return nil
}

// Text gives a string member, and "" for every other value.
func (o Object) Text(name string) string {
	var text string
	if json.Unmarshal(o.Get(name), &text) != nil {
		return ""
	}
	return text
}

// Object gives a member that is an object, and nil for every other value.
func (o Object) Object(name string) Object {
	inner, err := ParseObject(o.Get(name))
	if err != nil {
		return nil
	}
	return inner
}

// With gives a copy in which a member has a value.
func (o Object) With(name string, value json.RawMessage) Object {
	copied := slices.Clone(o)
	for i := range copied {
		if copied[i].Name == name {
			copied[i].Value = value
			return copied
		}
	}
	return append(copied, Member{Name: name, Value: value})
}

// Without gives a copy that lacks some members.
func (o Object) Without(names ...string) Object {
	return slices.DeleteFunc(slices.Clone(o), func(m Member) bool { return slices.Contains(names, m.Name) })
}

// Same says whether two objects have the same members with the same bytes, in any order.
func (o Object) Same(other Object) bool { return len(Diff(o, other)) == 0 }

// JSON writes the object, its values as they are.
func (o Object) JSON() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(m.Name) // a string always marshals
		b.Write(name)
		b.WriteByte(':')
		b.Write(m.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func (o Object) String() string { return string(o.JSON()) }

// blank says whether a value counts as empty where members are only filled.
func blank(raw json.RawMessage) bool {
	if raw == nil {
		return true
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return false
	}
	switch compact.String() {
	case "null", `""`, "{}", "[]":
		return true
	}
	return false
}

// depthOf counts how deeply arrays and objects of a valid JSON text are nested.
func depthOf(text []byte) int {
	deepest, depth, quoted := 0, 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			deepest = max(deepest, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return deepest
}
