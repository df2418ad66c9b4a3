package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Ingest applies a stream of {Action, Settings} lines that has a name. An event without an EventGUID is known by the name
// and by being the n-th equal line, so the same stream twice adds nothing.
func (m *Model) Ingest(name string, lines io.Reader) ([]Answer, error) {
	var answers []Answer
	seen := map[string]int{}
	r := bufio.NewReaderSize(lines, 1<<20)
	for {
		line, err := r.ReadBytes('\n')
		if line = bytes.TrimSpace(line); len(line) > 0 {
			seen[string(line)]++
			answers = append(answers, m.applyLine(line, fmt.Sprintf("stream %s, number %d of %s", name, seen[string(line)], line)))
		}
		if err == io.EOF {
			return answers, nil
		}
		if err != nil {
			return answers, err
		}
	}
}

func (m *Model) applyLine(line []byte, origin string) Answer {
	var call struct {
		Action   string
		Settings json.RawMessage
	}
	if err := json.Unmarshal(line, &call); err != nil {
		return Answer{Code: invalid, Reason: err.Error()}
	}
	return m.apply(call.Action, call.Settings, false, origin)
}
