package ports

import (
	"bytes"
	"slices"
	"strconv"
)

// What is decided of attempts. See decide.go.

func (d *decider) attempt() error {
	e := d.entry
	d.effect.Kind, d.effect.Number = KindAttempt, e.Number
	present, err := d.look.Attempt(e.Key, e.Number)
	if err != nil {
		return err
	}
	given := d.parse(Attempts)
	if given == nil {
		return nil
	}
	if present != nil {
		if e.Action == UpdateAttemptOutcome && d.stamped() {
			d.overwriteStamped(present, given, "WorkItemHash", "AttemptNumber")
			return nil
		}
		if e.Action == UpdateAttemptOutcome {
			next := present.Record.Clone()
			if len(overwrite(next, given, "WorkItemHash", "AttemptNumber")) > 0 {
				d.store(present, next, "")
			}
			return nil
		}
		d.fillAttempt(present, given)
		return nil
	}
	if e.Action == UpdateAttemptOutcome || e.Class == Reflush || d.stamped() {
		known, err := d.itemKnown()
		switch {
		case err != nil:
			return err
		case !known && d.waits():
			return d.early()
		case !known && e.Class == Reflush:
			d.outcome(Expired)
			return nil
		case !known:
			d.outcome(Missing)
			return nil
		}
	}
	given.Set("WorkItemHash", keyJSON(given.Get("WorkItemHash"), e.Key))
	given.Set("AttemptNumber", strconv.AppendInt(nil, e.Number, 10))
	d.store(nil, given, "")
	return nil
}

// keyJSON is the key as the caller spelled it, or as we do where he gave none.
func keyJSON(given []byte, key string) []byte {
	if given != nil {
		return given
	}
	return AppendQuoted(nil, key)
}

// fillAttempt merges an attempt that was inserted again: what is there stays. A second beacon is kept beside the first.
func (d *decider) fillAttempt(present *Held, given *Record) {
	next := present.Record.Clone()
	changed := fill(next, given, d.fixed(present, "WorkItemHash", "AttemptNumber")...)
	first, second := present.Record.Get("BeaconID"), given.Get("BeaconID")
	if !Blank(first) && !Blank(second) && string(first) != string(second) {
		changed = addOtherBeacon(next, second) || changed
	}
	if !changed {
		d.outcome(AlreadyPresent)
		return
	}
	d.store(present, next, "")
}

// OtherBeacons is the member in which an attempt keeps the beacons that claimed it after the first.
const OtherBeacons = "OtherBeaconIDs"

func addOtherBeacon(r *Record, beacon []byte) bool {
	list := r.Get(OtherBeacons)
	if Blank(list) {
		return r.Set(OtherBeacons, slices.Concat([]byte("["), beacon, []byte("]")))
	}
	if list[0] != '[' {
		return false // a caller's own member of that name
	}
	known := false
	_ = ScanItems(list, func(other []byte) { known = known || string(other) == string(beacon) }) // it was checked with its record
	if known {
		return false
	}
	return r.Set(OtherBeacons, slices.Concat(bytes.TrimRight(list[:len(list)-1], " \t\r\n"), []byte(","), beacon, []byte("]")))
}
