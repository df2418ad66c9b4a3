package mesh

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/core"
	"holdfast/ports"
)

// A pushed work becomes a call of the core, in the order of arrival, and its answer a report. What the application refuses is a
// completed work whose Outputs say so, with Success in them always (wire contract B.3, C.2).

// persistence are the capabilities that a member offers.
var persistence = []string{"QueuePersistence", "ManifestStore"}

// capabilityFor is the capability under which a hub asks for an action, "" for an unknown one.
func capabilityFor(a ports.Action) string {
	switch a.Family() {
	case ports.Queue:
		return "QueuePersistence"
	case ports.Manifest:
		return "ManifestStore"
	}
	return ""
}

// hubPatience is the time that a hub gives each call; an answer that comes close to it may have come too late.
const hubPatience = 4 * time.Second

// take begins a work. It waits while too much is in hand, and so keeps the rest in the hub.
func (m *Member) take(s *visit, w pushed) {
	cost := min(w.size+1024, m.limits.Bytes)
	s.held.Store(true)
	err := m.bytes.Acquire(s.ctx, cost)
	if err == nil {
		select {
		case m.slots <- struct{}{}:
		case <-s.ctx.Done():
			m.bytes.Release(cost)
			err = s.ctx.Err()
		}
	}
	s.held.Store(false)
	if err != nil {
		return // the connection is lost, and the hub pushes the work again over the next one
	}
	came := time.Now()
	promise := m.begin(&w)
	m.count(func(v *MemberStatus) { v.Taken++ })
	m.handle(func() {
		defer m.bytes.Release(cost)
		defer func() { <-m.slots }()
		answer := m.wait(&w, promise)
		m.noteAnswer(&answer, time.Since(came))
		m.report(w.hash, answer.AppendJSON(nil))
	})
}

// begin gives a work to the core, or says why not.
func (m *Member) begin(w *pushed) Promise {
	wanted := capabilityFor(w.action)
	switch {
	case !slices.Contains(persistence, w.capability):
		return settled{core.Refusal(ports.InField(ports.Invalid, "Capability", "%q is none of this beacon's; it has %s",
			printable(w.capability), strings.Join(persistence, " and ")))}
	case wanted != w.capability:
		return settled{core.Refusal(ports.InField(ports.Invalid, "Action", "%q is no action of %s; the actions are %s",
			printable(string(w.action)), w.capability, actionsOf(w.capability)))}
	case w.action.IsWrite() && m.isOurs(w):
		return settled{core.Answer{Situation: core.Ignored}}
	}
	if len(w.settings) == 0 || w.settings[0] != '{' {
		w.settings = []byte("{}")
	}
	return m.core.Begin(core.Call{Action: w.action, Settings: w.settings, Source: core.Source{
		Actor: m.hub, Origin: ports.OriginMember, Hub: m.hub, Work: w.hash, Stamp: stampOf(w.hash),
	}})
}

// settled is a promise of what is known already.
type settled struct{ answer core.Answer }

func (s settled) Wait(context.Context) core.Answer { return s.answer }

// isOurs remembers the work as one about persistence, and says whether what it writes is about such a one: a hub's records of
// them would breed more of them without end.
func (m *Member) isOurs(w *pushed) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ours.add(w.hash)
	if w.marked {
		m.ours.add(w.about)
	}
	return w.about != "" && m.ours.has(w.about)
}

// wait waits for the core's answer. Few reads are under way at a time: their answers may be large.
func (m *Member) wait(w *pushed, promise Promise) core.Answer {
	ctx, cancel := context.WithTimeout(context.Background(), m.timing.Answer)
	defer cancel()
	if w.action.IsWrite() {
		return promise.Wait(ctx)
	}
	select {
	case m.reading <- struct{}{}:
		defer func() { <-m.reading }()
		return promise.Wait(ctx)
	case <-ctx.Done():
		return core.Refusal(ports.Errorf(ports.Unavailable, "", "%d reads are under way already; ask again in a moment", m.limits.Reads))
	}
}

// noteAnswer counts an answer, and notes when it may have ended a flush: that goes on when the beacon registers again.
func (m *Member) noteAnswer(a *core.Answer, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !a.Success() && a.Situation != core.NotFound {
		m.view.Refused++
	}
	if a.Situation == core.Unavailable || took > hubPatience {
		m.broken = true
	}
}

// refuse reports a work that could not even be read.
func (m *Member) refuse(hash string, again bool, why error) {
	answer := core.Refusal(why)
	if again && answer.Situation == core.Refused {
		answer.Situation = core.RefusedQuietly
	}
	m.count(func(v *MemberStatus) { v.Refused++ })
	m.handle(func() { m.report(hash, answer.AppendJSON(nil)) })
}

// report tells the hub what became of a work: over the connection that there is now, else over HTTP, once. What it never hears
// it pushes again.
func (m *Member) report(hash string, outputs []byte) {
	if s := m.current(); s != nil {
		frame := newObject(len(outputs)+200).str("Action", "WorkComplete").str("WorkItemHash", hash).
			raw("Outputs", outputs).raw("Log", []byte("[]")).done()
		if s.send(frame) == nil {
			m.count(func(v *MemberStatus) { v.Reported++ })
			return
		}
	}
	body := newObject(len(outputs)+32).raw("Outputs", outputs).raw("Log", []byte("[]")).done()
	err := m.web.complete(hash, body)
	m.count(func(v *MemberStatus) {
		if err == nil {
			v.ReportedOverHTTP++
		} else {
			v.Unreported++
		}
	})
	if err != nil {
		m.log.Debug("a report could not be sent; the hub pushes the work again", "hub", m.hub, "work", printable(hash), "error", err)
	}
}

// stampOf reads the two numbers that a hub's WorkItemHash ends in, `-<epoch ms>-<counter>`; a hash without them gives none.
func stampOf(hash string) (s ports.Stamp) {
	i := strings.LastIndexByte(hash, '-')
	if i < 0 {
		return s
	}
	j := strings.LastIndexByte(hash[:i], '-')
	ms, err := strconv.ParseUint(hash[j+1:i], 10, 63)
	if j < 0 || err != nil {
		return s
	}
	count, err := strconv.ParseUint(hash[i+1:], 10, 64)
	if err != nil {
		return s
	}
	return ports.Stamp{Ms: int64(ms), Count: count}
}

// offered are the actions of a member, as its registration tells them.
var offered = []struct {
	action   ports.Action
	what     string
	settings [][3]string // name, type, and "" for one that may be left out
}{
	{ports.UpsertWorkItem, "Stores a work item, or lays its members over the one of that hash.", [][3]string{{"WorkItem", "Object", "!"}}},
	{ports.UpdateWorkItem, "Changes members of a work item.", [][3]string{{"WorkItemHash", "String", "!"}, {"Patch", "Object", "!"}}},
	{ports.AppendEvent, "Adds an event of a work item, once.", [][3]string{{"Event", "Object", "!"}}},
	{ports.InsertAttempt, "Stores an attempt of a work item.", [][3]string{{"Attempt", "Object", "!"}}},
	{ports.UpdateAttemptOutcome, "Tells how an attempt ended.", [][3]string{{"WorkItemHash", "String", "!"}, {"AttemptNumber", "Number", ""}, {"Patch", "Object", "!"}}},
	{ports.GetWorkItemByHash, "Reads a work item.", [][3]string{{"WorkItemHash", "String", "!"}}},
	{ports.ListWorkItems, "Lists work items.", [][3]string{{"Filter", "Object", ""}}},
	{ports.GetEvents, "Lists the events of a work item.", [][3]string{{"WorkItemHash", "String", "!"}, {"Limit", "Number", ""}}},
	{ports.ListAttempts, "Lists the attempts of a work item.", [][3]string{{"WorkItemHash", "String", "!"}, {"Limit", "Number", ""}}},
	{ports.UpsertManifest, "Stores the manifest of a run.", [][3]string{{"Manifest", "Object", "!"}}},
	{ports.RemoveManifest, "Removes the manifest of a run.", [][3]string{{"RunHash", "String", "!"}}},
	{ports.GetManifest, "Reads the manifest of a run.", [][3]string{{"RunHash", "String", "!"}}},
	{ports.ListManifests, "Lists manifests.", [][3]string{{"Filter", "Object", ""}}},
}

func actionsOf(capability string) string {
	var names []string
	for _, o := range offered {
		if capabilityFor(o.action) == capability {
			names = append(names, string(o.action))
		}
	}
	return strings.Join(names, ", ")
}

// actionSchemas is the registration's list of them.
var actionSchemas = func() []byte {
	var list [][]byte
	for _, o := range offered {
		var settings [][]byte
		for _, setting := range o.settings {
			settings = append(settings, newObject(100).str("Name", setting[0]).str("DataType", setting[1]).boolean("Required", setting[2] != "").done())
		}
		list = append(list, newObject(400).str("Capability", capabilityFor(o.action)).str("Action", string(o.action)).
			str("Description", o.what).raw("SettingsSchema", jsonList(settings)).done())
	}
	return jsonList(list)
}()
