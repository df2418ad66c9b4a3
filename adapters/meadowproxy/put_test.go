package meadowproxy

import (
	"fmt"
	"testing"

	"holdfast/adapters/meadowproxy/stock"
	"holdfast/ports"
)

var word = map[ports.Kind]string{ports.KindItem: "Status", ports.KindEvent: "EventType", ports.KindAttempt: "Outcome", ports.KindManifest: "Status"}

// inEach runs a test with each of the engines.
func inEach(t *testing.T, test func(t *testing.T, b *behind)) {
	t.Helper()
	inManners(t, func(t *testing.T, o stock.Options) {
		t.Helper()
		test(t, newBehind(t, o))
	})
}

func TestRowsAreStoredReplacedRemovedAndBroughtBack(t *testing.T) {
	t.Parallel()
	inEach(t, func(t *testing.T, b *behind) {
		var first, second, gone []ports.Row
		for _, key := range []string{"one", "two", "three"} {
			for _, kind := range ports.Kinds {
				r := b.row(kind, key, len(key), fmt.Sprintf(`%q:"Running","Unknown":{"a": 1},"Settings":{"b":2}`, word[kind]))
				first = append(first, r)
				second = append(second, b.row(kind, key, len(key), fmt.Sprintf(`%q:"Complete"`, word[kind])))
				second[len(second)-1].First = r.First
				gone = append(gone, ports.Row{Kind: r.Kind, Key: r.Key, GUID: r.GUID, Number: r.Number, Gone: true, Change: r.Change})
			}
		}
		b.put(first...)
		b.has("after the first put", first...)
		b.put(first...)
		b.has("after it was repeated", first...)
		b.put(second...)
		b.has("after it was replaced", second...)
		b.put(gone[:4]...)
		b.lacks("after it was removed", first[:4]...)
		b.has("after others were removed", second[4:]...)
		b.put(gone...)
		b.put(gone...)
		b.lacks("after all were removed", first...)
		b.put(first...)
		b.has("after they came back", first...)
	})
}
