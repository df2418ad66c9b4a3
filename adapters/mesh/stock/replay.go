package stock

// A transcript played: its beacon's side to a hub, or its hub's side to a beacon. What the other side says is compared with
// what was recorded.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Dispatcher has a hub give a recorded work to the beacon of that name, and waits for what the beacon reports.
type Dispatcher func(ctx context.Context, beacon string, work *Item) (outputs json.RawMessage, err error)

// replay is the beacon's side of a transcript while it is played.
type replay struct {
	hub      string
	shape    Shape
	dispatch Dispatcher
	name     string
	here     []string // pairs of a recorded id and the one that this hub gave
	outcomes map[string]<-chan outcome
	conn     *websocket.Conn
	cookie   string
	found    []string
}

type outcome struct {
	outputs json.RawMessage
	err     error
}

// PlayBeacon plays the beacon's side of a transcript to the hub at that address, and gives the differences between its
// answers and the recorded ones. An error is what kept it from going on.
func PlayBeacon(ctx context.Context, steps []Step, hub string, shape Shape, dispatch Dispatcher) ([]string, error) {
	p := &replay{hub: hub, shape: shape, dispatch: dispatch, outcomes: map[string]<-chan outcome{}}
	defer func() {
		if p.conn != nil {
			_ = p.conn.CloseNow()
		}
	}()
	for i := range steps {
		if err := p.step(ctx, &steps[i]); err != nil {
			return p.found, fmt.Errorf("line %d: %w", steps[i].Line, err)
		}
	}
	return p.found, nil
}

func (p *replay) step(ctx context.Context, s *Step) error {
	switch {
	case s.Kind == StepHTTP:
		return p.request(ctx, s)
	case s.Kind == StepOpen:
		conn, res, err := websocket.Dial(ctx, strings.Replace(p.hub, "http", "ws", 1)+s.Path, nil)
		if res != nil && res.Body != nil {
			res.Body.Close()
		}
		if err == nil {
			conn.SetReadLimit(frameLimit)
			p.conn = conn
		}
		return err
	case s.Kind == StepFrame && s.FromBeacon():
		p.learnName(s.Frame)
		if err := p.conn.Write(ctx, websocket.MessageText, p.translate(s.Frame)); err != nil {
			return err
		}
		return p.reported(ctx, s.Frame)
	case s.Kind == StepFrame:
		return p.hear(ctx, s)
	case s.Kind == StepClosed && p.conn != nil:
		_ = p.conn.CloseNow()
	}
	return nil
}

// learnName remembers what the beacon calls itself.
func (p *replay) learnName(doc json.RawMessage) {
	if name := text(inside(doc)["Name"]); name != "" {
		p.name = name
	}
}

// translate puts the ids that this hub gave in the place of the recorded ones.
func (p *replay) translate(doc []byte) []byte {
	return []byte(strings.NewReplacer(p.here...).Replace(string(doc)))
}

// learn compares a document with the recorded one and takes over the ids that it gives.
func (p *replay) learn(s *Step, recorded, got json.RawMessage) {
	for _, d := range p.shape.Compare(recorded, got) {
		p.found = append(p.found, fmt.Sprintf("line %d, %s: %s", s.Line, s.title(), d))
	}
	if before, now := text(inside(recorded)["BeaconID"]), text(inside(got)["BeaconID"]); before != "" && now != "" {
		p.here = append(p.here, before, now)
	}
}

func (s *Step) title() string {
	if s.Kind == StepHTTP {
		return s.Method + " " + s.Path
	}
	if w := s.Work(); w != nil {
		return w.Action
	}
	m := inside(s.Frame)
	return s.Direction + " " + text(m["Action"]) + text(m["EventType"])
}

// order has the hub hand out a recorded work.
func (p *replay) order(ctx context.Context, work *Item) {
	settings := inside(work.Settings)
	delete(settings, "QueueMetadata") // the hub puts it in
	asked := *work
	asked.Settings = document(settings)
	answer := make(chan outcome, 1)
	go func() {
		outputs, err := p.dispatch(ctx, p.name, &asked)
		answer <- outcome{outputs, err}
	}()
	p.outcomes[work.WorkItemHash] = answer
}

// took takes over the hash that the hub gave to a work.
func (p *replay) took(work *Item, got json.RawMessage) error {
	var carrier struct{ WorkItem *Item }
	if json.Unmarshal(got, &carrier) != nil || carrier.WorkItem == nil {
		return fmt.Errorf("no work came: %.300s", got)
	}
	p.here = append(p.here, work.WorkItemHash, carrier.WorkItem.WorkItemHash)
	return nil
}

func (p *replay) hear(ctx context.Context, s *Step) error {
	work := s.Work()
	if work != nil {
		p.order(ctx, work)
	}
	_, got, err := p.conn.Read(ctx)
	if err != nil {
		return err
	}
	p.learn(s, s.Frame, got)
	if work != nil {
		return p.took(work, got)
	}
	return nil
}

// reported compares what a hub gives to its caller with what the beacon reported.
func (p *replay) reported(ctx context.Context, report json.RawMessage) error {
	m := inside(report)
	return p.settled(ctx, text(m["WorkItemHash"]), m["Outputs"])
}

func (p *replay) settled(ctx context.Context, hash string, outputs json.RawMessage) error {
	waiting := p.outcomes[hash]
	if waiting == nil {
		return nil
	}
	delete(p.outcomes, hash)
	select {
	case o := <-waiting:
		if o.err != nil {
			return fmt.Errorf("the caller of %s was told: %w", hash, o.err)
		}
		if !sameJSON(o.outputs, outputs) {
			p.found = append(p.found, fmt.Sprintf("%s: reported %.200s, the caller got %.200s", hash, outputs, o.outputs))
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the caller of %s was told nothing: %w", hash, ctx.Err())
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// request makes a recorded request. A poll that found work is made until it finds some.
func (p *replay) request(ctx context.Context, s *Step) error {
	p.learnName(s.Request)
	work := s.Work()
	if work != nil {
		p.order(ctx, work)
	}
	for {
		status, got, err := p.carry(ctx, s)
		if err != nil {
			return err
		}
		if work != nil && status == http.StatusOK && string(inside(got)["WorkItem"]) == "null" {
			select {
			case <-time.After(time.Millisecond):
				continue
			case <-ctx.Done():
				return errors.New("polls found no work")
			}
		}
		if status != s.Status {
			p.found = append(p.found, fmt.Sprintf("line %d, %s: recorded status %d, here %d", s.Line, s.title(), s.Status, status))
		}
		p.learn(s, s.Response, got)
		if work != nil {
			return p.took(work, got)
		}
		if hash, ok := strings.CutSuffix(strings.TrimPrefix(s.Path, "/Beacon/Work/"), "/Complete"); ok {
			return p.settled(ctx, hash, inside(s.Request)["Outputs"])
		}
		return nil
	}
}

func (p *replay) carry(ctx context.Context, s *Step) (int, json.RawMessage, error) {
	var body io.Reader
	if len(s.Request) > 0 && s.Method != http.MethodDelete {
		body = bytes.NewReader(p.translate(s.Request))
	}
	req, err := http.NewRequestWithContext(ctx, s.Method, p.hub+string(p.translate([]byte(s.Path))), body)
	if err != nil {
		return 0, nil, err
	}
	if s.RequestHeader["transfer-encoding"] == "chunked" {
		req.ContentLength = -1
	}
	req.Header.Set("Content-Type", s.RequestHeader["content-type"])
	if p.cookie != "" {
		req.Header.Set("Cookie", p.cookie)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer res.Body.Close()
	if cookies := res.Header.Values("Set-Cookie"); len(cookies) > 0 {
		p.cookie, _, _ = strings.Cut(cookies[0], ";")
	}
	if kind := res.Header.Get("Content-Type"); !slices.Contains(strings.Split(kind, ";"), "application/json") {
		p.found = append(p.found, fmt.Sprintf("line %d, %s: content type %q", s.Line, s.title(), kind))
	}
	got, err := io.ReadAll(res.Body)
	return res.StatusCode, got, err
}
