package acceptance

import (
	"testing"
)

// A follower whose store is another than it was: wiped, an older copy, or a store that somebody else filled. It is brought
// to what it should have, whether the host runs meanwhile or is started again.

// astray puts another store in a follower's place. prepare is called when "first" is written.
type astray struct {
	prepare func(m *mirrored) map[string][]byte
}

var astrayWays = map[string]astray{
	"wiped": {func(*mirrored) map[string][]byte { return nil }},
	"restored from an older copy": {func(m *mirrored) map[string][]byte {
		m.host.Stop(m.T) // so that the file is whole
		older := store(m.T, m.host.File("mirror"))
		m.host.Restart(m.T)
		m.host.AwaitEqual(m.T)
		return older
	}},
	"another store": {func(m *mirrored) map[string][]byte {
		return foreign(m.T, func(y *history) { y.write("first", false) })
	}},
}

func TestAFollowerWhoseStoreIsAnotherThanItWasBecomesEqual(t *testing.T) {
	t.Parallel()
	for name, way := range astrayWays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := startMirrored(t, "mirror")
			m.write("first", false)
			m.host.AwaitEqual(t)
			files := way.prepare(m)
			m.write("second", false)
			m.change("many", 1000)
			m.host.AwaitEqual(t)

			m.host.Hold(t, "mirror")
			place(t, m.host.File("mirror"), files)
			m.write("third", false)
			m.host.Free(t, "mirror")
			m.equal("mirror")

			m.host.Stop(t)
			place(t, m.host.File("mirror"), files)
			m.host.Restart(t)
			m.write("fourth", false)
			m.equal("mirror")
		})
	}
}
