package mesh

import (
	"strconv"
	"time"

	"holdfast/ports"
)

// object is a JSON object that is being written. What beacons and callers sent goes into it byte for byte.
type object struct{ text []byte }

func newObject(size int) *object { return &object{append(make([]byte, 0, size+64), '{')} }

// raw adds a member that is JSON already; nil is null.
func (o *object) raw(name string, value []byte) *object {
	if value == nil {
		value = []byte("null")
	}
	return o.member(ports.AppendQuoted(nil, name), value)
}

// member adds a member whose name is JSON already too.
func (o *object) member(quoted, value []byte) *object {
	if len(o.text) > 1 {
		o.text = append(o.text, ',')
	}
	o.text = append(append(o.text, quoted...), ':')
	o.text = append(o.text, value...)
	return o
}

func (o *object) str(name, value string) *object {
	return o.raw(name, ports.AppendQuoted(nil, value))
}

// orNull adds a text, or null for an empty one.
func (o *object) orNull(name, value string) *object {
	if value == "" {
		return o.raw(name, nil)
	}
	return o.str(name, value)
}

func (o *object) number(name string, value int64) *object {
	return o.raw(name, strconv.AppendInt(nil, value, 10))
}

func (o *object) boolean(name string, value bool) *object {
	return o.raw(name, strconv.AppendBool(nil, value))
}

func (o *object) strs(name string, values []string) *object {
	return o.raw(name, appendStrings(nil, values))
}

// at adds a moment; the zero one is null.
func (o *object) at(name string, t time.Time) *object {
	if t.IsZero() {
		return o.raw(name, nil)
	}
	return o.str(name, isoTime(t))
}

// orEmpty adds an opaque member, or an empty one of its kind.
func (o *object) orEmpty(name string, value []byte) *object {
	if value == nil {
		value = []byte("{}")
		if opaqueMembers[name] == '[' {
			value = []byte("[]")
		}
	}
	return o.raw(name, value)
}

func (o *object) done() []byte { return append(o.text, '}') }

func appendStrings(dst []byte, values []string) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = ports.AppendQuoted(dst, v)
	}
	return append(dst, ']')
}

// jsonList is a list of values that are JSON already.
func jsonList(values [][]byte) []byte {
	dst := []byte{'['}
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, v...)
	}
	return append(dst, ']')
}

// isoTime is a moment as the wire has it: UTC with milliseconds.
func isoTime(t time.Time) string { return ports.FormatMs(t.UnixMilli()) }
