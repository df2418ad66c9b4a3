package ports

import "slices"

// How two records of one key become one: overwrite, fill, and which of two is the later.

// FinishedKey is the TimeKey of the first of the members that holds a time, "" if none does.
func FinishedKey(r *Record, members ...string) string {
	for _, name := range members {
		if key, ok := TimeKey(r.Text(name)); ok {
			return key
		}
	}
	return ""
}

// later says whether a record that is sent again is newer than the present one and may replace it.
func later(present, given *Record, terminal []string, member string) bool {
	theirs, ok := TimeKey(given.Text(member))
	if !ok {
		return false
	}
	if ours, ok := TimeKey(present.Text(member)); ok && theirs <= ours {
		return false
	}
	undone := slices.Contains(terminal, present.Text("Status")) && given.Get("Status") != nil &&
		!slices.Contains(terminal, given.Text("Status"))
	return !undone
}

// laterManifest is later for manifests. A hub that starts again finds the runs that it had finished as its disk saw them last,
// under way, and says of each that it failed just now: Error undoes no other end.
func laterManifest(present, given *Record) bool {
	if given.Text("Status") == "Error" && slices.Contains(TerminalManifests, present.Text("Status")) {
		return false
	}
	return later(present, given, TerminalManifests, "StopTime")
}

// emptied names the members of a manifest that one which is sent again would empty: a hub sends the summary of a run, and all
// that is large is empty in it. Only what a run waits for is empty because nothing is left of it.
func emptied(present, given *Record) (names []string) {
	merge(given, []string{"WaitingTasks"},
		func(at int, value []byte) bool { return Blank(value) && !Blank(present.Cols[at]) },
		func(name string, value []byte) bool { return Blank(value) && !Blank(present.Get(name)) },
		func(name string) { names = append(names, name) })
	return names
}

// overwrite sets every member that is given, but for those to keep, and names the ones that changed.
func overwrite(next, given *Record, keep ...string) (changed []string) {
	merge(given, keep,
		func(at int, value []byte) bool { return next.setCol(at, value) },
		func(name string, value []byte) bool { return next.Set(name, value) },
		func(name string) { changed = append(changed, name) })
	return changed
}

// fill sets the members that are given where the present one is missing or blank, and says whether any changed.
func fill(next, given *Record, keep ...string) (changed bool) {
	empty := func(now, value []byte) bool { return now == nil || Blank(now) && !Blank(value) }
	merge(given, keep,
		func(at int, value []byte) bool { return empty(next.Cols[at], value) && next.setCol(at, value) },
		func(name string, value []byte) bool { return empty(next.Get(name), value) && next.Set(name, value) },
		func(string) { changed = true })
	return changed
}

// merge hands every given member, but for those to keep, to column or extra, and the names of those that took to changed.
func merge(given *Record, keep []string, column func(at int, value []byte) bool, extra func(name string, value []byte) bool, changed func(name string)) {
	for at, value := range given.Cols {
		if value == nil {
			continue
		}
		if name := given.Table.Members[at].Name; !slices.Contains(keep, name) && column(at, value) {
			changed(name)
		}
	}
	for _, m := range given.Extra {
		if !slices.Contains(keep, m.Name) && extra(m.Name, m.Value) {
			changed(m.Name)
		}
	}
}
