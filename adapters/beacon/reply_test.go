package beacon

import (
	"strings"
	"testing"

	"holdfast/ports"
)

func TestWhatAnAnswerToAWriteMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer ports.WorkAnswer
		err    error
		want   ports.Code
	}{
		"done":                        {ports.WorkAnswer{Outputs: []byte(`{"Success":true,"QueueMetadata":{"x":[1]}}`)}, nil, ""},
		"refused":                     {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"RunID is odd"}`)}, nil, ports.Invalid},
		"refused without a word":      {ports.WorkAnswer{Outputs: []byte(`{"Success":false}`)}, nil, ports.Invalid},
		"refused for its size":        {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"Payload too large"}`)}, nil, ports.TooLarge},
		"refused by the store":        {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"FOREIGN KEY constraint failed"}`)}, nil, ports.Conflict},
		"locked":                      {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"SQLITE_BUSY: database is locked"}`)}, nil, ports.Unavailable},
		"disk full":                   {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"ENOSPC: no space left on device"}`)}, nil, ports.Full},
		"not allowed":                 {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"Permission denied"}`)}, nil, ports.Unauthorized},
		"its store is away":           {ports.WorkAnswer{Failure: "connect ECONNREFUSED 127.0.0.1:5432"}, nil, ports.Unavailable},
		"thrown":                      {ports.WorkAnswer{Failure: "Cannot read properties of undefined"}, nil, ports.Internal},
		"thrown by the store":         {ports.WorkAnswer{Failure: "CHECK constraint failed: Status"}, nil, ports.Conflict},
		"no Success":                  {ports.WorkAnswer{Outputs: []byte(`{"Stored":1}`)}, nil, ports.Internal},
		"a Success that is none":      {ports.WorkAnswer{Outputs: []byte(`{"Success":"yes"}`)}, nil, ports.Internal},
		"no object":                   {ports.WorkAnswer{Outputs: []byte(`[1]`)}, nil, ports.Internal},
		"nothing":                     {ports.WorkAnswer{}, nil, ports.Internal},
		"a capability it has not":     {ports.WorkAnswer{Outputs: []byte(`{"StdOut":"Unknown capability: QueuePersistence","ExitCode":-1,"Result":""}`)}, nil, ports.Unavailable},
		"an action it has not":        {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"Unknown action QP_X"}`)}, nil, ports.Unavailable},
		"too late":                    {ports.WorkAnswer{}, ports.Errorf(ports.Deadline, "mesh", "no report"), ports.Deadline},
		"lost after it was sent":      {ports.WorkAnswer{}, ports.Errorf(ports.BackendGone, "mesh", "connection lost"), ports.Deadline},
		"not there":                   {ports.WorkAnswer{}, ports.Errorf(ports.Unavailable, "mesh", "not connected"), ports.Unavailable},
		"too much waits":              {ports.WorkAnswer{}, ports.Errorf(ports.Full, "mesh", "waits"), ports.Full},
		"the caller left":             {ports.WorkAnswer{}, ports.Errorf(ports.Canceled, "mesh", "gone"), ports.Canceled},
		"it cannot travel":            {ports.WorkAnswer{}, ports.OverLimit("Settings", "bytes", 5, 9), ports.TooLarge},
		"it is no object":             {ports.WorkAnswer{}, ports.InField(ports.Invalid, "Settings", "is none"), ports.Invalid},
		"it does not offer it":        {ports.WorkAnswer{}, ports.Errorf(ports.Invalid, "mesh", "does not offer"), ports.Unavailable},
		"the host's mesh is at fault": {ports.WorkAnswer{}, ports.Errorf(ports.Internal, "mesh", "a defect"), ports.Unavailable},
		"the host does not know us":   {ports.WorkAnswer{}, ports.Errorf(ports.Unauthorized, "mesh", "the token is wrong"), ports.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, _, b := settle(t)
			put(t, b, item("before", 1, ""))
			v.failing("QP_UpsertWorkItem", 1000, func(ports.Work, act) (ports.WorkAnswer, error) { return c.answer, c.err })
			applied, err := b.Put(within(t), ports.Batch{Family: ports.Queue, Rows: []ports.Row{item("w", 1, `,"S":"s3cr3t"`)}})
			if ports.CodeOf(err) != c.want || (applied.Done == 1) != (c.want == "") {
				t.Errorf("Done %d, %v; want %q", applied.Done, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "s3cr3t") {
				t.Errorf("the error tells of the record: %v", err)
			}
			if e := ports.AsError(err); c.want == ports.TooLarge && c.err != nil && (e.Limit != 5 || e.Size != 9) {
				t.Errorf("limit %d, size %d; want 5 and 9", e.Limit, e.Size)
			}
		})
	}
}

func TestWhatAnAnswerToAReadMeans(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer ports.WorkAnswer
		err    error
		want   ports.Code
	}{
		"a miss":                         {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"WorkItem":null}`)}, nil, ports.NotFound},
		"a miss that says so":            {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"Reason":"Work item not found"}`)}, nil, ports.NotFound},
		"nothing":                        {ports.WorkAnswer{Outputs: []byte(`{"Success":true,"WorkItem":null}`)}, nil, ports.NotFound},
		"trouble":                        {ports.WorkAnswer{Outputs: []byte(`{"Success":false,"WorkItem":null,"Reason":"I am tired"}`)}, nil, ports.Unavailable},
		"somebody else's record":         {ports.WorkAnswer{Outputs: []byte(`{"Success":true,"WorkItem":{"WorkItemHash":"w"}}`)}, nil, ports.Unimplemented},
		"a text":                         {ports.WorkAnswer{Outputs: []byte(`{"Success":true,"WorkItem":"w"}`)}, nil, ports.Internal},
		"an action it has not":           {ports.WorkAnswer{Outputs: []byte(`{"StdOut":"Unknown capability","ExitCode":-1}`)}, nil, ports.Unimplemented},
		"the connection broke meanwhile": {ports.WorkAnswer{}, ports.Errorf(ports.BackendGone, "mesh", "connection lost"), ports.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, _, b := settle(t)
			v.failing("QP_GetWorkItemByHash", 1000, func(ports.Work, act) (ports.WorkAnswer, error) { return c.answer, c.err })
			if _, err := b.Item(within(t), "w"); ports.CodeOf(err) != c.want {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

func TestAnAnswerThatIsAnotherRecordIsNone(t *testing.T) {
	t.Parallel()
	v, _, b := settle(t)
	put(t, b, item("w", 1, `,"Status":"Pending"`))
	v.failing("QP_GetWorkItemByHash", 1000, func(w ports.Work, do act) (ports.WorkAnswer, error) {
		return do([]byte(`{"WorkItemHash":"w"}`))
	})
	if _, err := b.Item(within(t), "other"); ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("the record of another key was answered: %v", err)
	}
	if got, err := b.Item(within(t), "w"); err != nil || got.Change.Seq != 1 {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAProbeTellsABeaconThatIsNoneOfThisKind(t *testing.T) {
	t.Parallel()
	v, _, b := settle(t)
	v.failing("QP_GetWorkItemByHash", 1000, func(ports.Work, act) (ports.WorkAnswer, error) {
		return ports.WorkAnswer{Outputs: []byte(`{"StdOut":"Unknown capability: QueuePersistence","ExitCode":-1,"Result":""}`)}, nil
	})
	if err := b.Probe(within(t), ports.Queue); ports.CodeOf(err) != ports.Unimplemented {
		t.Errorf("the queue: %v; want unimplemented", err)
	}
	if err := b.Probe(within(t), ports.Manifest); err != nil {
		t.Errorf("the manifests: %v", err)
	}
}
