package stock

// The comparison of what was said with what was recorded: the same members with the same JSON types, ids, times and texts
// aside. A few members are words of the protocol, their values are compared too.

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Shape says how two documents are compared.
type Shape struct {
	// Opaque are the members whose inside is the business of the sender, as dotted paths: "WorkItem.Settings". "*" is any
	// one member, arrays do not count.
	Opaque []string
	// Free are members that may be missing on either side, as dotted paths.
	Free []string
	// Words are the last names of members whose values are compared.
	Words []string
}

// Frames compares what travels between a beacon and a hub.
func Frames() Shape {
	return Shape{
		Opaque: []string{
			"WorkItem.Settings.WorkItem.Settings", "WorkItem.Settings.WorkItem.Result", "WorkItem.Settings.Event.Payload",
			"WorkItem.Settings.Patch.Result", "WorkItem.Settings.Patch.Settings", "WorkItem.Settings.Manifest", "Outputs.WorkItems",
			"Outputs.WorkItem", "Outputs.Manifests", "Outputs.Manifest", "Outputs.Events", "Tags", "Contexts",
		},
		Words: []string{"Action", "Capability", "EventType", "Capabilities", "MaxConcurrent", "Name", "LoggedIn", "Success"},
	}
}

// Compare says, one line each, where got differs in shape from what was recorded; nothing when it does not.
func (s Shape) Compare(recorded, got json.RawMessage) []string {
	var r, g any
	if err := decode(recorded, &r); err != nil {
		return []string{"the recorded document is no JSON: " + err.Error()}
	}
	if err := decode(got, &g); err != nil {
		return []string{fmt.Sprintf("no JSON (%v): %.200s", err, got)}
	}
	var found []string
	s.walk(nil, r, g, &found)
	return found
}

func decode(doc json.RawMessage, into *any) error {
	if len(doc) == 0 {
		doc = []byte("null")
	}
	return json.Unmarshal(doc, into)
}

func (s Shape) walk(path []string, recorded, got any, found *[]string) {
	at := strings.Join(path, ".")
	if rt, gt := typeOf(recorded), typeOf(got); rt != gt {
		*found = append(*found, fmt.Sprintf("%s: recorded %s, here %s", name(at), rt, gt))
		return
	}
	if len(path) > 0 && slices.Contains(s.Words, path[len(path)-1]) && fmt.Sprint(recorded) != fmt.Sprint(got) {
		*found = append(*found, fmt.Sprintf("%s: recorded %v, here %v", name(at), recorded, got))
		return
	}
	if matches(s.Opaque, path) {
		return
	}
	switch r := recorded.(type) {
	case map[string]any:
		s.members(path, r, got.(map[string]any), found)
	case []any:
		s.elements(path, r, got.([]any), found)
	}
}

func (s Shape) members(path []string, recorded, got map[string]any, found *[]string) {
	for _, key := range keysOf(recorded, got) {
		inside := append(slices.Clone(path), key)
		r, recordedHas := recorded[key]
		g, gotHas := got[key]
		switch {
		case recordedHas && gotHas:
			s.walk(inside, r, g, found)
		case matches(s.Free, inside):
		case recordedHas:
			*found = append(*found, fmt.Sprintf("%s: recorded %s, here missing", strings.Join(inside, "."), typeOf(r)))
		default:
			*found = append(*found, fmt.Sprintf("%s: not recorded, here %s", strings.Join(inside, "."), typeOf(g)))
		}
	}
}

// elements takes an array for a set of shapes: each element must look like some recorded one. Empty ones look like any.
func (s Shape) elements(path []string, recorded, got []any, found *[]string) {
	if len(recorded) == 0 {
		return
	}
	for _, g := range got {
		var best []string
		for i, r := range recorded {
			var here []string
			s.walk(path, r, g, &here)
			if i == 0 || len(here) < len(best) {
				best = here
			}
		}
		*found = append(*found, best...)
		if len(best) > 0 {
			return
		}
	}
}

func keysOf(a, b map[string]any) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}

func matches(patterns, path []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		parts := strings.Split(pattern, ".")
		return slices.EqualFunc(parts, path, func(p, key string) bool { return p == "*" || p == key })
	})
}

func name(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "an array"
	default:
		return "an object"
	}
}
