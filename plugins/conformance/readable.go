package conformance

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"holdfast/ports"
)

// What people read of a failed case: each call with its request and its answer. It looks like JSON; bodies stand in it as
// they are, byte for byte, empty fields are left out, and what is long is cut.

const (
	keptText = 8 << 10 // of one side of a call
	keptBody = 1 << 10 // of one body or text in it
)

// traced writes exchanges one under the other.
func traced(list []Exchange) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "  %s\n", e.Call)
		if e.Request != "" {
			fmt.Fprintf(&b, "    asked    %s\n", e.Request)
		}
		if e.Answer != "" {
			fmt.Fprintf(&b, "    answered %s\n", e.Answer)
		}
		if e.Err != "" {
			fmt.Fprintf(&b, "    refused  %s\n", e.Err)
		}
	}
	return b.String()
}

// text renders a value of the port; "" for one without anything in it.
func text(value any) string {
	v := reflect.ValueOf(value)
	if !v.IsValid() || empty(v) {
		return ""
	}
	raw := render(nil, v)
	if len(raw) > keptText {
		return cut(raw, keptText)
	}
	return string(raw)
}

// faultText is an error as a trace shows it.
func faultText(err error) string {
	if err == nil {
		return ""
	}
	e := ports.AsError(err)
	text := fmt.Sprintf("%s: %s", e.Code, e.Error())
	if e.Limit != 0 || e.Size != 0 {
		text += fmt.Sprintf(" (limit %d, size %d)", e.Limit, e.Size)
	}
	return text
}

func cut(raw []byte, most int) string {
	for most > 0 && !utf8.RuneStart(raw[most]) {
		most--
	}
	return fmt.Sprintf("%s... (%d bytes)", raw[:most], len(raw))
}

func empty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	}
	return v.IsZero()
}

func render(dst []byte, v reflect.Value) []byte {
	switch value := v.Interface().(type) {
	case time.Time:
		return strconv.AppendQuote(dst, value.Format(time.RFC3339Nano))
	case time.Duration:
		return strconv.AppendQuote(dst, value.String())
	case *ports.Error:
		if value == nil {
			return append(dst, "null"...)
		}
		return ports.AppendQuoted(dst, faultText(value))
	case json.RawMessage:
		return renderBody(dst, value)
	case []byte:
		return renderBody(dst, value)
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return append(dst, "null"...)
		}
		return render(dst, v.Elem())
	case reflect.Struct:
		return renderStruct(dst, v)
	case reflect.Slice:
		return renderList(dst, v)
	case reflect.Map:
		return renderMap(dst, v)
	case reflect.String:
		if v.Len() > keptBody {
			return ports.AppendQuoted(dst, cut([]byte(v.String()), keptBody))
		}
		return ports.AppendQuoted(dst, v.String())
	}
	return fmt.Append(dst, v.Interface())
}

// renderBody shows JSON as it was written, and anything else as a text.
func renderBody(dst, body []byte) []byte {
	switch {
	case len(body) > keptBody:
		return append(dst, cut(body, keptBody)...)
	case json.Valid(body):
		return append(dst, body...)
	}
	return strconv.AppendQuote(dst, string(body))
}

func renderStruct(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '{')
	begun := false
	for i := range v.NumField() {
		if !v.Type().Field(i).IsExported() || empty(v.Field(i)) {
			continue
		}
		dst = separate(dst, &begun)
		dst = ports.AppendQuoted(dst, v.Type().Field(i).Name)
		dst = render(append(dst, ": "...), v.Field(i))
	}
	return append(dst, '}')
}

func renderList(dst []byte, v reflect.Value) []byte {
	dst = append(dst, '[')
	begun := false
	for i := range v.Len() {
		if dst = separate(dst, &begun); len(dst) > 2*keptText {
			return fmt.Appendf(dst, "... %d in all]", v.Len())
		}
		dst = render(dst, v.Index(i))
	}
	return append(dst, ']')
}

func renderMap(dst []byte, v reflect.Value) []byte {
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	dst = append(dst, '{')
	begun := false
	for _, key := range keys {
		dst = ports.AppendQuoted(separate(dst, &begun), key.String())
		dst = render(append(dst, ": "...), v.MapIndex(key))
	}
	return append(dst, '}')
}

func separate(dst []byte, begun *bool) []byte {
	if *begun {
		return append(dst, ", "...)
	}
	*begun = true
	return dst
}
