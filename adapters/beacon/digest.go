package beacon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	"holdfast/ports"
)

// Digests tell whether a beacon still has what was put, also where it keeps columns alone and writes values in its own way:
// only columns count that are no longer than longestTold, what is empty, false or 0 counts as missing, an object is as good as its text, a yes as good as 1, and
// numbers are compared as numbers.

// longestTold keeps large bodies out of it: the columns beside them tell one state from another.
const longestTold = 16 << 10

// digest is what was put of a record, as far as a beacon must have it.
type digest struct {
	Has string // the columns that count, as in an imprint
	Sum string
}

func digestOf(r *ports.Record) digest {
	var has uint64
	for at, value := range r.Cols {
		if len(value) <= longestTold && plain(value) != "" {
			has |= 1 << at
		}
	}
	return digest{strconv.FormatUint(has, 16), columnSum(r, has)}
}

// shows says whether a record that a beacon gives has what was put.
func (d digest) shows(given *ports.Record) bool {
	has, err := strconv.ParseUint(d.Has, 16, 64)
	return err == nil && columnSum(given, has) == d.Sum
}

func columnSum(r *ports.Record, has uint64) string {
	h := sha256.New()
	for at, value := range r.Cols {
		if has&(1<<at) != 0 {
			text := plain(value)
			h.Write([]byte(strconv.Itoa(at) + " " + strconv.Itoa(len(text)) + " "))
			h.Write([]byte(text))
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:12])
}

// plain is a value without the ways in which stores write it.
func plain(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	var value any
	if json.Unmarshal(raw, &value) != nil {
		return string(raw) // a number beyond a double, say
	}
	return plainOf(value)
}

func plainOf(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case bool:
		if v {
			return "1"
		}
		return ""
	case float64:
		if v == 0 {
			return ""
		}
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return plainText(v)
	case []any:
		if len(v) == 0 {
			return ""
		}
	case map[string]any:
		if len(v) == 0 {
			return ""
		}
	}
	text, err := json.Marshal(value) // the members of objects in order
	if err != nil {
		return ""
	}
	return string(text)
}

func plainText(text string) string {
	trimmed := strings.TrimSpace(text)
	var value any
	switch {
	case trimmed == "":
		return ""
	case trimmed[0] == '{' || trimmed[0] == '[':
		if json.Unmarshal([]byte(trimmed), &value) == nil {
			return plainOf(value)
		}
	default:
		if f, err := strconv.ParseFloat(trimmed, 64); err == nil {
			return plainOf(f)
		}
	}
	return text
}

// An event's content is what tells it from others of its key where the beacon keeps no EventGUID.
var contentOf = []string{"EventType", "FromStatus", "ToStatus", "BeaconID", "Payload"}

// entry is an event as a beacon shows it.
type entry struct {
	guid    string // "" where the beacon does not keep it
	content string
	when    string // EmittedAt and Seq, where they are kept
	sum     string // of the imprint; "" without one
	claimed string // the EventGUID of the event that this entry is taken for
}

func entryOf(r *ports.Record) entry {
	h := sha256.New()
	for _, name := range contentOf {
		text := plain(r.Get(name))
		h.Write([]byte(strconv.Itoa(len(text)) + " " + text))
	}
	e := entry{guid: r.Text("EventGUID"), content: hex.EncodeToString(h.Sum(nil)[:12])}
	e.when = plain(r.Get("EmittedAt")) + " " + plain(r.Get("Seq"))
	if e.when == " " {
		e.when = ""
	}
	if i, ok := readImprint(r); ok {
		e.sum = i.Sum
	}
	return e
}

// shownBy gives the place of the entry that shows an event; -1 when none does.
func shownBy(entries []entry, e entry) int {
	for i := range entries {
		if entries[i].guid == e.guid || entries[i].claimed == e.guid {
			return i
		}
	}
	for i := range entries {
		is := &entries[i]
		if is.guid == "" && is.claimed == "" && is.content == e.content && (is.when == "" || e.when == "" || is.when == e.when) {
			return i
		}
	}
	return -1
}
