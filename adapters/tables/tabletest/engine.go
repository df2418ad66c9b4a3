package tabletest

import (
	"testing"
	"time"

	"holdfast/ports"
)

// Store is what a store on tables can do.
type Store interface {
	ports.LocalStore
	ports.Exporter
	ports.Pruner
}

// Place opens backends on one place, one after the other, that no host has opened yet. Who asks for one closes it.
type Place func(t Failer) Store

// Engine is what the tests must know of an engine.
type Engine struct {
	// Places gives empty places, one after the other: what a place held may be gone when the next one is asked for.
	Places func(t testing.TB) func(t Failer) Place

	// Stamps gives the stamps of hubs of a record, which no port shows; number is that of an attempt.
	Stamps func(t Failer, s Store, k ports.Kind, key string, number int64) string
	// Tombstones lists what was removed, of both families.
	Tombstones func(t Failer, s Store) []ports.Row
	// SetMark says that another host has committed so far.
	SetMark func(t Failer, s Store, f ports.Family, host string, seq uint64)
	// LimitSearch sets how long a search may look at rows.
	LimitSearch func(s Store, d time.Duration)
	// LimitGraves sets how many tombstones of a family are kept.
	LimitGraves func(t Failer, s Store, n int64)

	// How much is written, for engines that are not equally fast.
	Items, Events, Writes int // of the largest lists, and beside a reader
	Rounds, Batches       int // of any writes, at most
}

// Failer is a test, or one run of a property.
type Failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Run runs all tests.
func Run(t *testing.T, e *Engine) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, *Engine){
		"every page size shows each item once in the order of time": everyPageSize,
		"filters hold together":                             filters,
		"a list in the order of a column":                   orderOfAColumn,
		"a search stops in time and goes on":                searchStops,
		"pages are cut by bytes and bodies left out":        pagesCutByBytes,
		"many events of one item":                           manyEvents,
		"manifests are listed by acceptance":                manifestsByAcceptance,
		"it holds what a store in memory holds":             holdsWhatMemoryHolds,
		"a walk tells exactly what changed":                 walkTellsWhatChanged,
		"a position of another history is refused":          positionOfAnotherHistory,
		"nothing is told before a host opened it":           nothingToldBeforeOpen,
		"a store that holds nothing ends at once":           emptyEndsAtOnce,
		"a record that changes during a walk is told again": changesDuringAWalk,
		"a follower misses nothing while it is written":     followerMissesNothing,
		"a page of changes is cut by bytes between Seqs":    changesCutByBytes,
		"forgotten removals are told":                       forgottenRemovals,
		"prune takes what ended before a time":              pruneTakesWhatEnded,
		"prune looks beyond many young records":             pruneLooksOn,
		"prune and export work without a host":              pruneWithoutAHost,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// fresh gives a store in a new place that takes commits.
func (e *Engine) fresh(t testing.TB) Store {
	t.Helper()
	s := opened(t, e.Places(t)(t))
	Admit(t, s, "")
	return s
}

// opened gives a store on a place that is closed with the test.
func opened(t testing.TB, p Place) Store {
	t.Helper()
	s := p(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}
