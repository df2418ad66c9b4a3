package stock

// JSON as JavaScript has it: objects whose members stay in their order, the last of two equal ones counting in the place of the
// first, and values that become text as String() makes it.

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
)

// member is one member of an object.
type member struct {
	name  string
	value value
}

type object []member

// value is a JSON value as it came.
type value struct {
	raw json.RawMessage
}

func (o object) get(name string) (value, bool) {
	for _, m := range o {
		if m.name == name {
			return m.value, true
		}
	}
	return value{}, false
}

// with is the object with a member replaced or added at the end.
func (o object) with(name string, v value) object {
	for i := range o {
		if o[i].name == name {
			o[i].value = v
			return o
		}
	}
	return append(o, member{name, v})
}

func (o object) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.name))
		b.WriteByte(':')
		b.Write(m.value.raw)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// array puts values between brackets.
func array(items []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, raw := range items {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(raw)
	}
	b.WriteByte(']')
	return b.Bytes()
}

// encode is JSON.stringify of something that is always a JSON value.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return json.RawMessage("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func of(v any) value { return value{raw: encode(v)} }

// parse reads a whole JSON text.
func parse(text []byte) (value, error) {
	if !json.Valid(text) {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return value{}, err
		}
		return value{}, errors.New("invalid JSON")
	}
	return value{raw: bytes.TrimSpace(text)}, nil
}

func (v value) first() byte {
	if len(v.raw) == 0 {
		return 'n'
	}
	return v.raw[0]
}

func (v value) isNull() bool   { return v.first() == 'n' }
func (v value) isObject() bool { return v.first() == '{' }
func (v value) isArray() bool  { return v.first() == '[' }
func (v value) isString() bool { return v.first() == '"' }
func (v value) isBool() bool   { return v.first() == 't' || v.first() == 'f' }
func (v value) isNumber() bool { return v.first() == '-' || v.first() >= '0' && v.first() <= '9' }
func (v value) truth() bool    { return v.first() == 't' }

func (v value) number() float64 {
	f, _ := strconv.ParseFloat(string(v.raw), 64) // beyond the range it is an infinity, as in JavaScript
	return f
}

// text is String(v) of what is no object.
func (v value) text() string {
	switch {
	case v.isString():
		var s string
		_ = json.Unmarshal(v.raw, &s) // it was valid
		return s
	case v.isNumber():
		return string(encode(v.number()))
	case v.isArray():
		var parts []string
		for _, item := range v.items() {
			if item.isNull() {
				parts = append(parts, "")
				continue
			}
			parts = append(parts, item.text())
		}
		return strings.Join(parts, ",")
	case v.isObject():
		return "[object Object]"
	}
	return string(v.raw)
}

// compact is JSON.stringify(v).
func (v value) compact() string {
	var b bytes.Buffer
	if err := json.Compact(&b, v.raw); err != nil {
		return string(v.raw)
	}
	return b.String()
}

func (v value) items() (items []value) {
	var raws []json.RawMessage
	_ = json.Unmarshal(v.raw, &raws) // it was valid
	for _, raw := range raws {
		items = append(items, value{raw: bytes.TrimSpace(raw)})
	}
	return items
}

// members are an object's; what is no object has none.
func (v value) members() (o object) {
	if !v.isObject() {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(v.raw))
	_, _ = d.Token()
	at := map[string]int{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return o
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return o
		}
		key, _ := name.(string)
		if i, twice := at[key]; twice {
			o[i].value = value{raw: raw}
			continue
		}
		at[key] = len(o)
		o = append(o, member{key, value{raw: raw}})
	}
	return o
}
