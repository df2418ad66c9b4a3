package bench

import (
	"bytes"
	"fmt"

	"holdfast/core"
	"holdfast/internal/workload"
	"holdfast/ports"
)

// bodies gives the lines of items from..to in NDJSON bodies of so many lines.
func bodies(from, to, lines int) (all [][]byte) {
	var body bytes.Buffer
	in := 0
	for _, line := range workload.Lines(from, to-from) {
		body.Write(line)
		body.WriteByte('\n')
		if in++; in == lines {
			all = append(all, bytes.Clone(body.Bytes()))
			body.Reset()
			in = 0
		}
	}
	if in > 0 {
		all = append(all, body.Bytes())
	}
	return all
}

// item is the writes of one item, in order.
type item [workload.PerItem][]byte

func items(from, to int) (all []item) {
	for n := from; n < to; n++ {
		all = append(all, item(workload.Lines(n, 1)))
	}
	return all
}

// hashOf is the key of an item.
func hashOf(n int) string { return workload.Entries(n, 1, 1)[0].Key }

// entryOf makes the entry of a line in the simplest way: what every server of these writes must at least do.
func entryOf(line []byte) (e ports.Entry, err error) {
	call, err := core.ParseCall(line)
	if err != nil {
		return e, err
	}
	e = ports.Entry{Action: call.Action, Number: 1, ReceivedMs: 1796004734800, Host: workload.Host, Actor: "bench", Origin: ports.OriginHTTP}
	find := func(name, value []byte) error {
		switch string(name) {
		case `"WorkItem"`, `"Event"`, `"Patch"`:
			e.Record = value
		case `"WorkItemHash"`:
			e.Key, _ = ports.Unquote(value)
		}
		return nil
	}
	if err := ports.ScanObject(call.Settings, ports.MaxDepth, find); err != nil {
		return e, err
	}
	if e.Record == nil {
		return e, fmt.Errorf("no record in %s", call.Settings)
	}
	return e, nil
}
