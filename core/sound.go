package core

import "holdfast/ports"

// What a backend answers to a read is looked at before a caller gets it: it comes from a program of somebody else. That it is
// true nobody can tell here; that it is a record of what was asked for, and whole JSON, can be.

// sound says whether a row answers a question about a kind of record, and about one key unless that is empty.
func sound(row *ports.Row, kind ports.Kind, key string) error {
	switch {
	case row.Kind != kind:
		return unsound("a record of the kind %q, asked for one of %q", row.Kind, kind)
	case key != "" && row.Key != key:
		return unsound("a record of another key than it was asked for")
	}
	if err := ports.ScanObject(row.Body, 2*ports.MaxDepth, func(_, _ []byte) error { return nil }); err != nil {
		return unsound("a body that is no JSON object: %v", err)
	}
	return nil
}

func unsound(format string, args ...any) error {
	return ports.Errorf(ports.Internal, "read", "it answered "+format+"; its plugin is at fault", args...)
}
