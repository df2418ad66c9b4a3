package core

import (
	"maps"
	"strings"
	"testing"

	"holdfast/ports"
)

// before gives the encounter of a host that committed 100 entries to store A, of which its journal still has those after 50.
func before(edit func(e *encounter)) encounter {
	e := encounter{
		known: ports.LocalMark{StoreID: "A", Marks: map[ports.Family]ports.Mark{ports.Queue: {Seq: 100}}}, met: true,
		standing: ports.Standing{StoreID: "A", Nonce: "n2", Marks: map[ports.Family]ports.Mark{ports.Queue: {Seq: 100}}},
		nonces:   []string{"n2", "n1"},
		journals: map[ports.Family]ports.Bounds{ports.Queue: {First: 51, Head: 120, Appended: 120}},
	}
	if edit != nil {
		edit(&e)
	}
	return e
}

func at(seq uint64) map[ports.Family]ports.Mark {
	if seq == 0 {
		return nil
	}
	return map[ports.Family]ports.Mark{ports.Queue: {Seq: seq}}
}

func TestWhatTheHostDoesWithTheStoreThatItFinds(t *testing.T) {
	t.Parallel()
	none := ports.Span{}
	other := func(e *encounter) { e.standing = ports.Standing{StoreID: "B", Marks: at(0)} }
	for name, c := range map[string]struct {
		edit   func(e *encounter)
		waits  bool
		choice bool // `holdfast local accept` helps
		resume uint64
		lost   ports.Span
		note   bool
	}{
		"the same store": {},
		"a first start with an empty store": {edit: func(e *encounter) {
			*e = encounter{standing: ports.Standing{StoreID: "A", Empty: true}, journals: map[ports.Family]ports.Bounds{ports.Queue: {First: 1}}}
		}},
		"a first start with a store that others filled": {edit: func(e *encounter) {
			*e = encounter{standing: ports.Standing{StoreID: "A"}, journals: map[ports.Family]ports.Bounds{ports.Queue: {First: 1}}}
		}},
		"a first start with a lost state and a journal that was trimmed": {edit: func(e *encounter) {
			e.met, e.known, e.nonces, e.standing = false, ports.LocalMark{}, nil, ports.Standing{StoreID: "A", Empty: true}
		}, resume: 50, lost: ports.Span{From: 1, To: 50}},
		"a store that is ahead of what was remembered": {edit: func(e *encounter) { e.standing.Marks = at(110) }},
		"a store that opened after the host forgot it": {edit: func(e *encounter) { e.standing.Nonce = "n1" }, note: true},
		"an older copy within the journal":             {edit: func(e *encounter) { e.standing.Nonce, e.standing.Marks = "n1", at(60) }, note: true},
		"an older copy just within the journal":        {edit: func(e *encounter) { e.standing.Nonce, e.standing.Marks = "n1", at(50) }, note: true},
		"an older copy behind the journal": {edit: func(e *encounter) { e.standing.Nonce, e.standing.Marks = "n1", at(30) },
			note: true, resume: 50, lost: ports.Span{From: 31, To: 50}},
		"an older copy of before the first start": {edit: func(e *encounter) { e.standing.Nonce, e.standing.Marks = "", at(0) },
			note: true, resume: 50, lost: ports.Span{From: 1, To: 50}},
		"an older copy behind a journal with nothing in it": {edit: func(e *encounter) {
			e.standing.Nonce, e.standing.Marks = "n1", at(90)
			e.journals[ports.Queue] = ports.Bounds{First: 121, Head: 120, Appended: 120}
		}, note: true, resume: 120, lost: ports.Span{From: 91, To: 120}},
		"a wiped store, all of it in the journal": {edit: func(e *encounter) {
			e.standing = ports.Standing{StoreID: "B", Empty: true}
			e.journals[ports.Queue] = ports.Bounds{First: 1, Head: 120, Appended: 120}
		}, note: true},
		"a wiped store, some of it in the journal": {edit: func(e *encounter) { e.standing = ports.Standing{StoreID: "B", Empty: true} },
			note: true, resume: 50, lost: ports.Span{From: 1, To: 50}},
		"another store":                       {edit: other, waits: true, choice: true},
		"another store that knows this host":  {edit: func(e *encounter) { e.standing.StoreID, e.standing.Nonce = "B", "n1" }, waits: true, choice: true},
		"another store, accepted":             {edit: func(e *encounter) { other(e); e.accept = accepted }, resume: 100},
		"another store, accepted, far behind": {edit: func(e *encounter) { other(e); e.accept, e.known.Marks = accepted, at(20) }, resume: 50, lost: ports.Span{From: 21, To: 50}},
		"another store, adopted":              {edit: func(e *encounter) { other(e); e.accept = adopted }, resume: 50},
		"another store, adopted, that is further": {edit: func(e *encounter) {
			other(e)
			e.accept, e.standing.Marks = adopted, at(80)
		}},
		"a cloned data directory":           {edit: func(e *encounter) { e.standing.Nonce = "n9" }, waits: true},
		"a cloned data directory, accepted": {edit: func(e *encounter) { e.standing.Nonce, e.accept = "n9", accepted }, waits: true},
		"a clone that became a host":        {edit: func(e *encounter) { e.known.Renamed, e.standing.Nonce, e.standing.Marks = true, "", at(0) }, note: true, resume: 100},
		"a clone that became a host, behind": {edit: func(e *encounter) {
			e.known.Renamed, e.known.Marks, e.standing.Nonce, e.standing.Marks = true, at(40), "", at(0)
		}, note: true, resume: 50, lost: ports.Span{From: 41, To: 50}},
		"a clone that goes on with its store": {edit: func(e *encounter) { e.known.Renamed, e.standing.Nonce, e.standing.Marks = true, "n2", at(110) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := decideCourse(before(c.edit))
			if (got.wait != "") != c.waits || (got.remedy != "") != c.waits || got.choice != c.choice {
				t.Errorf("it waits %q (%q), a choice: %v", got.wait, got.remedy, got.choice)
			}
			want := map[ports.Family]uint64{}
			if c.resume != 0 {
				want[ports.Queue] = c.resume
			}
			if !maps.Equal(got.resume, want) {
				t.Errorf("it resumes at %v, want %v", got.resume, want)
			}
			lost := map[ports.Family]ports.Span{}
			if c.lost != none {
				lost[ports.Queue] = c.lost
			}
			if !maps.Equal(got.lost, lost) {
				t.Errorf("lost are %v, want %v", got.lost, lost)
			}
			if (got.note != "") != c.note {
				t.Errorf("it notes %q", got.note)
			}
		})
	}
}

func TestTheRemedyNamesTheCopiesThatHaveWhatTheJournalHasNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		copies []string
		first  uint64
		says   string
	}{
		"no copy":                           {nil, 51, "what the journal still has; without"},
		"a journal that has everything":     {[]string{"mirror"}, 1, "what the journal still has; without"},
		"a copy, and a journal of late":     {[]string{"mirror"}, 51, "what the journal still has, then `holdfast adopt mirror` for what is older; without"},
		"two copies, and a journal of late": {[]string{"a", "b"}, 51, "then `holdfast adopt a` and `holdfast adopt b` for what is older; without"},
	} {
		got := decideCourse(before(func(e *encounter) {
			e.standing = ports.Standing{StoreID: "B"}
			e.copies, e.journals[ports.Queue] = c.copies, ports.Bounds{First: c.first, Head: 120, Appended: 120}
		}))
		if !got.choice || !strings.Contains(got.remedy, c.says) {
			t.Errorf("%s: %q", name, got.remedy)
		}
	}
}
