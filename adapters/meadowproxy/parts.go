package meadowproxy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"holdfast/ports"
)

// Texts that are too large for their column, as MySQL's TEXT of 65535 bytes is, go in parts to UVHoldfast. The parts of a state of a row
// have names that no other state has, so they can be written before the row that names them, and those that the row named before
// can be removed after it: at every moment the row names parts that are there. A host that dies in between leaves parts behind
// that nobody names.

// part is one part.
type part struct {
	key  string
	text string
}

// partRoom is how many bytes a part has at most, partPrefix how all of their keys begin.
const (
	partRoom   = 60_000
	partPrefix = "text/"
)

// part has a text stored in parts, and gives what stands in its column instead.
func (w *way) part(s *sent, row *ports.Row, c *ports.Column, text string, room int) []byte {
	name, n := partName(row, c.Name, text), 0
	for rest := text; rest != ""; n++ {
		piece := cutAt(rest, partRoom)
		s.parts = append(s.parts, part{partKey(name, n), piece})
		rest = rest[len(piece):]
	}
	s.extra.parts = appendMember(s.extra.parts, c.Name, fmt.Appendf(nil, `[%q,%d]`, name, n))
	if c.Type == ports.Text && c.Name != "Extra" {
		return ports.AppendQuoted(nil, cutAt(text, room)) // what people see of it
	}
	return ports.AppendQuoted(nil, fmt.Sprintf(`{"$parts":"in %s under %s%s/, %d of them"}`, ownTable, partPrefix, name, n))
}

// partName is the name of a text: no other state of the row has it, and no other text.
func partName(row *ports.Row, column, text string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00%d\x00%s\x00%s\x00%d\x00%s", row.Kind, row.Key, row.GUID, row.Number, column, row.Change.Host, row.Change.Seq, text)
	return hex.EncodeToString(h.Sum(nil))[:40]
}

func partKey(name string, n int) string { return partPrefix + name + "/" + strconv.Itoa(n) }

// bundle is where the parts of a column's text are.
type bundle struct {
	name  string
	count int
}

func (b bundle) keys() []string {
	keys := make([]string, b.count)
	for i := range keys {
		keys[i] = partKey(b.name, i)
	}
	return keys
}

// mostParts bounds what a row can name: a record of the largest size in parts.
const mostParts = 64 << 20 / (partRoom / 4)

// readParts reads $parts.
func readParts(raw []byte) (map[string]bundle, error) {
	parts := map[string]bundle{}
	err := ports.ScanObject(raw, ports.MaxDepth, func(name, value []byte) error {
		column, _ := ports.Unquote(name)
		var n bundle
		if err := json.Unmarshal(value, &[]any{&n.name, &n.count}); err != nil || n.count < 1 || n.count > mostParts || strings.Contains(n.name, "/") {
			return ports.Errorf(ports.Internal, "meadowproxy: read", "the parts of %s are not named as they should be", column)
		}
		parts[column] = n
		return nil
	})
	return parts, err
}
