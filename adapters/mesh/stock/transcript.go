package stock

// Recorded traffic between a beacon and a hub: one JSON object a line, in the order in which it was seen. A transcript may be
// stored with gzip; its name ends in .gz then.

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// Step is one thing that was seen: a request with its answer, a frame, a socket that opened or closed.
type Step struct {
	Line   int    `json:"-"`
	Millis int64  `json:"ms"`
	Kind   string `json:"kind"` // one of the Step kinds
	Socket int    `json:"id"`

	Method         string            `json:"method"`
	Path           string            `json:"path"`
	Status         int               `json:"status"`
	RequestHeader  map[string]string `json:"reqHeaders"`
	ResponseHeader map[string]string `json:"resHeaders"`
	Request        json.RawMessage   `json:"req"`
	Response       json.RawMessage   `json:"res"`

	Direction string          `json:"dir"` // "beacon->hub" or "hub->beacon"
	Frame     json.RawMessage `json:"msg"`
	Opening   json.RawMessage `json:"headers"` // of a socket
}

// The kinds of a Step.
const (
	StepHTTP   = "http"
	StepOpen   = "ws-open"
	StepFrame  = "ws"
	StepClosed = "ws-close"
)

// FromBeacon says who sent a frame.
func (s *Step) FromBeacon() bool { return s.Direction == "beacon->hub" }

// Work is the work that a step hands to the beacon, as a frame or as the answer to a poll; nil when it hands none.
func (s *Step) Work() *Item {
	var carrier struct{ WorkItem *Item }
	doc := s.Frame
	if s.Kind == StepHTTP {
		doc = s.Response
	}
	if len(doc) == 0 || s.Kind == StepFrame && s.FromBeacon() {
		return nil
	}
	if json.Unmarshal(doc, &carrier) != nil || carrier.WorkItem == nil || carrier.WorkItem.WorkItemHash == "" {
		return nil
	}
	return carrier.WorkItem
}

// Item is work as a beacon gets it.
type Item struct {
	WorkItemHash  string
	RunID         string
	Capability    string
	Action        string
	Settings      json.RawMessage
	OperationHash string
	TimeoutMs     int64
	AttemptNumber int
	QueueMetadata json.RawMessage
}

// Call is a work with what the beacon answered to it, as flush-sample.ndjson has them.
type Call struct {
	Capability   string
	Action       string
	WorkItemHash string
	TimeoutMs    int64
	Settings     json.RawMessage
	Reply        json.RawMessage
}

// Transcript reads a file of steps.
func Transcript(path string) ([]Step, error) {
	var steps []Step
	err := eachLine(path, func(n int, line []byte) error {
		s := Step{Line: n}
		if err := json.Unmarshal(line, &s); err != nil {
			return err
		}
		steps = append(steps, s)
		return nil
	})
	return steps, err
}

// Calls reads a file of calls.
func Calls(path string) ([]Call, error) {
	var calls []Call
	err := eachLine(path, func(_ int, line []byte) error {
		var c Call
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		calls = append(calls, c)
		return nil
	})
	return calls, err
}

func eachLine(path string, take func(n int, line []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		r = z
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		if len(lines.Bytes()) == 0 {
			continue
		}
		if err := take(n, lines.Bytes()); err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
	}
	return lines.Err()
}
