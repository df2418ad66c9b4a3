package stock

// The work of a beacon: which handler does it, and how its end is reported.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/coder/websocket"
)

// Handler does work and gives its Outputs; an error is reported as the failure of the work.
type Handler func(ctx context.Context, w *Work) (outputs any, err error)

// Action is something that a beacon can do.
type Action struct {
	Capability  string
	Name        string
	Description string            // Name
	Settings    []json.RawMessage // SettingsSchema
	Do          Handler
	// InOrder is for what waits for nothing: it is done one work after the other, in the order in which they came.
	InOrder bool
}

// Work is one work in hand.
type Work struct {
	Item

	beacon *Beacon
	fault  Fault
	due    time.Time // when it may be done
	mu     sync.Mutex
	log    []string
}

// Progress is what a beacon may tell while it works.
type Progress struct {
	Percent    *float64 `json:",omitempty"`
	Message    string   `json:",omitempty"`
	Step       *int     `json:",omitempty"`
	TotalSteps *int     `json:",omitempty"`
	Log        []string `json:",omitempty"`
}

// Say adds a line to the log that is reported with the outputs.
func (w *Work) Say(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.log = append(w.log, line)
}

// Progress reports progress.
func (w *Work) Progress(p Progress) {
	b := w.beacon
	if !b.State().Running || !b.awake(b.life) {
		return
	}
	if s := b.openSocket(); s != nil {
		s.send(b.life, map[string]any{"Action": "WorkProgress", "WorkItemHash": w.WorkItemHash, "ProgressData": p})
		return
	}
	_, _ = b.request(b.life, http.MethodPost, "/Beacon/Work/"+w.WorkItemHash+"/Progress", p) // as little as a frame
}

// Upload sends a file, over a socket only: without one the stock client sends none.
func (w *Work) Upload(name string, data []byte) {
	s := w.beacon.openSocket()
	if s == nil {
		return
	}
	s.uploads.Lock()
	defer s.uploads.Unlock()
	s.send(w.beacon.life, map[string]any{
		"Action": "WorkResultUpload", "WorkItemHash": w.WorkItemHash, "OutputFilename": name, "OutputSize": len(data),
	})
	_ = s.conn.Write(w.beacon.life, websocket.MessageBinary, data) // a socket that is gone is noticed by its reader
}

// openSocket is the socket by which reports go; nil when they go over HTTP.
func (b *Beacon) openSocket() *socket {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.useSocket {
		return nil
	}
	return b.socket
}

// take begins a work.
func (b *Beacon) take(item *Item) {
	w := &Work{Item: *item, beacon: b, log: []string{}}
	b.change(func() {
		b.active++
		b.counts.Taken++
		if b.misbehave != nil {
			w.fault = b.misbehave(w)
		}
		w.due = b.config.Clock.Now().Add(w.fault.Delay)
		b.inHand = append(b.inHand, w)
	})
	b.spawn(func() { b.do(w) })
}

func (b *Beacon) do(w *Work) {
	fault := w.fault
	if fault.Delay > 0 && !pause(b.life, b.config.Clock, fault.Delay) || !b.awake(b.life) {
		return
	}
	action := b.resolve(w.Capability, w.Action)
	if action.InOrder && b.Await(b.life, func(BeaconState) bool { return b.turn(w) }) != nil {
		return
	}
	var outputs any
	var err error
	if !fault.Undone {
		outputs, err = action.Do(b.life, w)
	}
	b.change(func() { b.inHand = slices.DeleteFunc(b.inHand, func(other *Work) bool { return other == w }) })
	if fault.Die {
		b.die()
		return
	}
	if !b.awake(b.life) || fault.Late > 0 && !pause(b.life, b.config.Clock, w.deadline()+fault.Late) {
		return
	}
	b.change(func() { b.active-- })
	if fault.Error != "" {
		err = fmt.Errorf("%s", fault.Error)
	}
	if s := b.openSocket(); s != nil && fault.Drop {
		b.DropSocket()
		b.closed(s)
	}
	if fault.Mute {
		return
	}
	b.report(w, outputs, err)
	if fault.Twice {
		b.report(w, outputs, err)
	}
}

// turn says whether nothing that was due before is still undone; the lock is held.
func (b *Beacon) turn(w *Work) bool {
	for _, other := range b.inHand {
		if other == w {
			continue
		}
		if b.resolve(other.Capability, other.Action).InOrder && (other.due.Before(w.due) || other.due.Equal(w.due) && b.before(other, w)) {
			return false
		}
	}
	return true
}

// before says which of two works came first.
func (b *Beacon) before(one, other *Work) bool {
	return slices.Index(b.inHand, one) < slices.Index(b.inHand, other)
}

// report tells the end of a work: over the socket when there is one, else over HTTP. The stock client does not try twice.
func (b *Beacon) report(w *Work, outputs any, failure error) {
	frame := map[string]any{"Action": "WorkComplete"}
	body := map[string]any{"Outputs": outputs, "Log": w.lines()}
	path := "/Complete"
	if failure != nil {
		frame["Action"], path = "WorkError", "/Error"
		body = map[string]any{"ErrorMessage": failure.Error(), "Log": []string{}}
	} else if outputs == nil {
		body["Outputs"] = map[string]any{}
	}
	b.change(func() { b.counts.Reported++ })
	if s := b.openSocket(); s != nil {
		maps.Copy(frame, body)
		frame["WorkItemHash"] = w.WorkItemHash
		s.send(b.life, frame)
		return
	}
	if _, err := b.request(b.life, http.MethodPost, "/Beacon/Work/"+w.WorkItemHash+path, body); err != nil {
		b.change(func() { b.counts.Unheard++ })
		b.config.Log("the report of " + w.WorkItemHash + " was not taken: " + err.Error())
	}
}

func (w *Work) lines() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.log)
}

// resolve finds the action as the stock executor does: an unknown action is the first one of its capability, and an unknown
// capability is a success that says otherwise.
func (b *Beacon) resolve(capability, action string) *Action {
	var first *Action
	for i := range b.config.Actions {
		a := &b.config.Actions[i]
		if a.Capability != capability {
			continue
		}
		if a.Name == action {
			return a
		}
		if first == nil {
			first = a
		}
	}
	if first != nil {
		return first
	}
	return &Action{Do: func(context.Context, *Work) (any, error) {
		return map[string]any{"StdOut": "Unknown capability: " + capability, "ExitCode": -1, "Result": ""}, nil
	}}
}

func capabilities(c BeaconConfig) []string {
	offered := []string{}
	add := func(name string) {
		if !slices.Contains(offered, name) {
			offered = append(offered, name)
		}
	}
	for _, a := range c.Actions {
		add(a.Capability)
	}
	for _, name := range c.Capabilities {
		add(name)
	}
	return offered
}

func schemas(actions []Action) []map[string]any {
	list := []map[string]any{}
	for _, a := range actions {
		description := a.Description
		orDefault(&description, a.Name)
		list = append(list, map[string]any{
			"Capability": a.Capability, "Action": a.Name, "Description": description,
			"SettingsSchema": append([]json.RawMessage{}, a.Settings...),
		})
	}
	return list
}
