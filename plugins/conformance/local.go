package conformance

import (
	"fmt"
	"maps"
	"strings"
	"time"

	"holdfast/ports"
)

// localStore is a case's local store, and a host that writes to it as hosts do: Stand, Open, then one batch after the other.
type localStore struct {
	c         *C
	store     ports.LocalStore
	host      string
	id        string // of the store
	nonce     string // what the store holds for the host
	retention time.Duration
	starts    int
	epochs    map[ports.Family]ports.Epoch // of the newest start
	seqs      map[ports.Family]uint64      // given last
}

// The hosts of the cases. Changes tells them in this order.
const (
	hostA = "11111111-2222-4333-8444-555555555555"
	hostB = "66666666-7777-4888-8999-aaaaaaaaaaaa"
	hostC = "bbbbbbbb-cccc-4ddd-8eee-ffffffffffff" // never opens a store; its rows come by Put
)

// needLocal is what nearly all cases about local stores need.
var needLocal = []string{"LocalStore"}

// local opens the case's backend for host A.
func local(c *C) *localStore { return localAt(c, c.Backend()) }

func localAt(c *C, b ports.Backend) *localStore {
	l := &localStore{c: c, store: powerOf[ports.LocalStore](c, b), host: hostA}
	l.begin()
	return l
}

// second opens the store for host B. Host A must start again before it goes on.
func (l *localStore) second() *localStore {
	other := &localStore{c: l.c, store: l.store, host: hostB}
	other.begin()
	return other
}

// begin is the first start of a host.
func (l *localStore) begin() {
	standing := l.stand()
	l.seqs, l.id, l.nonce = map[ports.Family]uint64{}, standing.StoreID, standing.Nonce
	l.start(nil)
}

func (l *localStore) stand() ports.Standing {
	standing, err := l.store.Stand(l.c.Ctx, l.host)
	if err != nil {
		l.c.Fatalf("Stand: %s", faultText(err))
	}
	return standing
}

// start opens the store as each start of the host does: with new epochs, which begin behind the highest Seq.
func (l *localStore) start(resume map[ports.Family]uint64) {
	l.starts++
	l.epochs = map[ports.Family]ports.Epoch{}
	maps.Copy(l.seqs, resume)
	for _, f := range ports.Families {
		l.epochs[f] = ports.Epoch{ID: fmt.Sprintf("epoch-%d-%s-%s", l.starts, f, l.host[:8]), From: l.seqs[f] + 1}
	}
	l.open(resume)
}

// open opens the store once more, as the host does after each start of the plugin.
func (l *localStore) open(resume map[ports.Family]uint64) {
	next := fmt.Sprintf("%s-nonce-%d-%d", l.host[:8], l.starts, len(l.nonce))
	o := ports.Opening{HostID: l.host, Nonce: l.nonce, Next: next, Epochs: maps.Clone(l.epochs), Resume: resume, Retention: l.retention}
	if err := l.store.Open(l.c.Ctx, o); err != nil {
		l.c.Fatalf("Open with the right nonce: %s", faultText(err))
	}
	l.nonce = next
}

// reopen ends the backend, by kill or in order, and opens what it kept for the same start of the host.
func (l *localStore) reopen(kill bool) {
	if kill {
		l.c.Kill()
	} else {
		l.c.Close()
	}
	l.store = power[ports.LocalStore](l.c)
	l.nonce = l.stand().Nonce
	l.open(nil)
}

// firstMs is when the first entry came; each comes a millisecond after the one before.
const firstMs = 1796004734800 // 2026-11-30T02:12:14.800Z

// batch numbers entries and makes the host's next batch of them.
func (l *localStore) batch(entries ...ports.Entry) ports.CommitBatch {
	f := entries[0].Action.Family()
	b := ports.CommitBatch{Family: f, Epoch: l.epochs[f].ID, After: l.seqs[f], Entries: entries}
	for i := range entries {
		l.seqs[f]++
		e := &entries[i]
		e.Seq, e.ReceivedMs, e.Host = l.seqs[f], firstMs+int64(l.seqs[f]), l.host[:8]
		if e.Origin == "" {
			e.Actor, e.Origin = "ops", ports.OriginHTTP
		}
	}
	b.Through = l.seqs[f]
	return b
}

// send submits a batch.
func (l *localStore) send(b ports.CommitBatch) ports.Pending {
	p, err := l.store.Commit(l.c.Ctx, b)
	if err != nil {
		l.c.Fatalf("Commit after %d: %s", b.After, faultText(err))
	}
	return p
}

// try commits a batch and gives what is answered.
func (l *localStore) try(b ports.CommitBatch) ([]ports.Decision, error) {
	p, err := l.store.Commit(l.c.Ctx, b)
	if err != nil {
		return nil, err
	}
	return p.Wait(l.c.Ctx)
}

// commit commits entries as one batch, which must be taken.
func (l *localStore) commit(entries ...ports.Entry) []ports.Decision {
	b := l.batch(entries...)
	decisions, err := l.try(b)
	if err != nil {
		l.c.Fatalf("a batch that follows the one before it, after %d through %d, is refused: %s", b.After, b.Through, faultText(err))
	}
	l.answersFit(&b, decisions)
	return decisions
}

// answersFit sees to it that a batch has one decision for each entry, in order.
func (l *localStore) answersFit(b *ports.CommitBatch, decisions []ports.Decision) {
	fit := len(decisions) == len(b.Entries)
	for i := 0; fit && i < len(decisions); i++ {
		fit = decisions[i].Seq == b.Entries[i].Seq
	}
	if !fit {
		l.c.Fatalf("a batch of %d entries after %d through %d has the decisions %s", len(b.Entries), b.After, b.Through, told(decisions))
	}
}

// told writes decisions as a message shows them.
func told(decisions []ports.Decision) string {
	texts := make([]string, len(decisions))
	for i, d := range decisions {
		if texts[i] = fmt.Sprintf("%d %s", d.Seq, d.Outcome); d.Err != nil {
			texts[i] += fmt.Sprintf(" (%s, field %q)", d.Err.Code, d.Err.Field)
		}
	}
	return fmt.Sprint(texts)
}

// The short forms of entries.

func liveEntry(action ports.Action, key, record string) ports.Entry {
	return ports.Entry{Action: action, Class: ports.Live, Key: key, Record: []byte(record)}
}

// keyed gives a record its key, as every record that is no patch has it.
func keyed(member, key, record string) string {
	if strings.Contains(record, `"`+member+`"`) {
		return record
	}
	rest := strings.TrimPrefix(record, "{")
	if strings.TrimSpace(rest) != "}" {
		rest = "," + rest
	}
	return `{"` + member + `":` + string(ports.AppendQuoted(nil, key)) + rest
}

func upsertOf(key, record string) ports.Entry {
	return liveEntry(ports.UpsertWorkItem, key, keyed("WorkItemHash", key, record))
}

func patchOf(key, patch string) ports.Entry { return liveEntry(ports.UpdateWorkItem, key, patch) }

func eventOf(key, guid, record string) ports.Entry {
	e := liveEntry(ports.AppendEvent, key, keyed("WorkItemHash", key, record))
	e.EventGUID = guid
	return e
}

func attemptOf(key string, number int64, record string) ports.Entry {
	e := liveEntry(ports.InsertAttempt, key, keyed("WorkItemHash", key, record))
	e.Number = number
	return e
}

func outcomeOf(key string, number int64, patch string) ports.Entry {
	e := liveEntry(ports.UpdateAttemptOutcome, key, patch)
	e.Number = number
	return e
}

func manifestOf(key, record string) ports.Entry {
	return liveEntry(ports.UpsertManifest, key, keyed("Hash", key, record))
}

func removalOf(key string) ports.Entry {
	return ports.Entry{Action: ports.RemoveManifest, Class: ports.Live, Key: key}
}

// again makes an entry a re-flush, and guided one whose caller gave the EventGUID.
func again(e ports.Entry) ports.Entry  { e.Class = ports.Reflush; return e }
func guided(e ports.Entry) ports.Entry { e.GUIDGiven = true; return e }
