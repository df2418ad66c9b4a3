package model

import (
	"bytes"
	"fmt"
	"slices"
)

// Diff tells member by member where two records differ, each difference as a sentence. The order of members does not
// matter, the bytes of their values do.
func Diff(want, got Object) []string {
	var differences []string
	for _, m := range want {
		switch value := got.Get(m.Name); {
		case value == nil:
			differences = append(differences, fmt.Sprintf("%s is missing, want %s", m.Name, short(m.Value)))
		case !bytes.Equal(value, m.Value):
			differences = append(differences, fmt.Sprintf("%s is %s, want %s", m.Name, short(value), short(m.Value)))
		}
	}
	for _, m := range got {
		if want.Get(m.Name) == nil {
			differences = append(differences, fmt.Sprintf("%s is %s, want nothing there", m.Name, short(m.Value)))
		}
	}
	return differences
}

// DiffRecord is Diff against a record that holdfast answered: what it adds (OrderKey; EventGUID where the caller gave none)
// is not a difference, but an EventGUID must be there.
func DiffRecord(kind Kind, want, got Object) []string {
	added := []string{"OrderKey"}
	if kind == KindEvent && want.Text("EventGUID") == "" {
		added = append(added, "EventGUID")
	}
	added = slices.DeleteFunc(added, func(name string) bool { return name == "OrderKey" && want.Get(name) != nil })
	differences := Diff(want.Without("EventGUID"), got.Without(append(added, "EventGUID")...))
	switch guid := got.Text("EventGUID"); {
	case kind != KindEvent && want.Get("EventGUID") != nil:
		differences = append(differences, Diff(only(want, "EventGUID"), only(got, "EventGUID"))...)
	case kind == KindEvent && guid == "":
		differences = append(differences, "EventGUID is missing")
	case kind == KindEvent && want.Text("EventGUID") != "" && guid != want.Text("EventGUID"):
		differences = append(differences, fmt.Sprintf("EventGUID is %s, want %s", guid, want.Text("EventGUID")))
	}
	return differences
}

func only(o Object, name string) Object {
	if value := o.Get(name); value != nil {
		return Object{{Name: name, Value: value}}
	}
	return nil
}

// DiffRecords compares lists of records that have the same order, such as the events or attempts of one item.
func DiffRecords(kind Kind, want, got []Object) []string {
	var differences []string
	if len(want) != len(got) {
		differences = append(differences, fmt.Sprintf("there are %d of kind %s, want %d", len(got), kind, len(want)))
	}
	for i := range min(len(want), len(got)) {
		for _, d := range DiffRecord(kind, want[i], got[i]) {
			differences = append(differences, fmt.Sprintf("%s %d: %s", kind, i+1, d))
		}
	}
	return differences
}

func short(value []byte) string {
	const most = 120
	if len(value) > most {
		return fmt.Sprintf("%s... (%d bytes)", value[:most], len(value))
	}
	return string(value)
}
