package mesh

// maxEnded is how many works that are done are remembered, so that a late report is told from one about nothing.
const maxEnded = 20_000

// memory is a set of the newest texts: two generations, each of half the size.
type memory struct {
	most     int
	now, old map[string]struct{}
}

func newMemory(most int) memory { return memory{most: most, now: map[string]struct{}{}} }

func (m *memory) add(text string) {
	if len(m.now) >= m.most/2 {
		m.now, m.old = map[string]struct{}{}, m.now
	}
	m.now[text] = struct{}{}
}

func (m *memory) has(text string) bool {
	_, now := m.now[text]
	_, old := m.old[text]
	return now || old
}
