package meadowproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"holdfast/ports"
)

// Characters that were cut. A databeacon puts the answer of its own interface together from pieces of 64 KiB at most, each read as a
// text of its own, so that a character on the border of two becomes two to four U+FFFD. The places are the same each time. Rows that
// have any are therefore asked for by another action, whose answer does not go through the interface.

// smallestPiece is how long an answer is at least that may have come in pieces.
const smallestPiece = 16 << 10

// mended gives the rows of an answer, those that may have lost characters read again. A row that cannot be read again stays as it is;
// see intact.
func (w *way) mended(ctx context.Context, a *ask, body []byte) ([]*shown, error) {
	rows, err := a.layout.readRows(body)
	if err != nil || len(body) < smallestPiece || !bytes.Contains(body, replacement) {
		return rows, err
	}
	torn := map[int64]int{}
	for i, s := range rows {
		if s.id > 0 && s.isOdd() {
			torn[s.id] = i
		}
	}
	if len(torn) == 0 {
		return rows, nil
	}
	again, err := w.query(ctx, a, torn)
	switch code := ports.CodeOf(err); {
	case code == ports.Deadline && ctx.Err() == nil:
		return nil, ports.Wrap(ports.Unavailable, opRead, err)
	case code == ports.Deadline || code == ports.Canceled:
		return nil, err
	case err != nil:
		return rows, nil //nolint:nilerr // it cannot be asked in this way
	}
	for _, s := range again {
		if i, is := torn[s.id]; is {
			rows[i] = s
		}
	}
	return rows, nil
}

// isOdd says whether a column has the character that stands where one was lost.
func (s *shown) isOdd() bool {
	for _, raw := range s.raw {
		if bytes.Contains(raw, replacement) {
			return true
		}
	}
	return false
}

// query asks the database itself for rows of some identities.
func (w *way) query(ctx context.Context, a *ask, of map[int64]int) ([]*shown, error) {
	mark := `"`
	if w.engine == engineMySQL {
		mark = "`"
	}
	what := "*"
	if a.columns != nil {
		var names []string
		for _, name := range append([]string{a.layout.identity, "Deleted"}, a.columns...) {
			if name = mark + name + mark; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		what = strings.Join(names, ",")
	}
	var ids []string
	for id := range of {
		ids = append(ids, strconv.FormatInt(id, 10))
	}
	outputs, err := w.act(ctx, a.class, accessCapability, "QueryTable", map[string]any{
		"IDBeaconConnection": w.connection,
		"SQL": "SELECT " + what + " FROM " + mark + a.layout.table.Name + mark + " WHERE " + mark + a.layout.identity + mark +
			" IN (" + strings.Join(ids, ",") + ")",
	})
	if err != nil {
		return nil, err
	}
	var said struct{ Rows json.RawMessage }
	if err := json.Unmarshal(outputs, &said); err != nil {
		return nil, ports.Wrap(ports.Unavailable, opRead, err)
	}
	return a.layout.readRows(said.Rows)
}

// mostReplaced is how many U+FFFD stand at most for one character that was cut.
const mostReplaced = utf8.UTFMax

// alike says whether a text that is shown is the given one but for characters that were cut.
func alike(shown, given string) bool {
	at := strings.Index(shown, string(replacement))
	if at < 0 || shown == given {
		return shown == given
	}
	if !strings.HasPrefix(given, shown[:at]) {
		return false
	}
	shown, given = shown[at:], given[at:]
	run := 0
	for strings.HasPrefix(shown, string(replacement)) {
		shown, run = shown[len(replacement):], run+1
	}
	for chars := 1; chars <= run; chars++ { // at most one of them was cut, for the borders are far from each other
		r, size := utf8.DecodeRuneInString(given)
		if r < utf8.RuneSelf || size == 0 {
			return false
		}
		given = given[size:]
		if chars >= run-mostReplaced+1 && alike(shown, given) {
			return true
		}
	}
	return false
}
