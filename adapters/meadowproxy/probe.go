package meadowproxy

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"holdfast/ports"
)

// A Probe asks the database where it is, and tries to change a row that cannot be there: that the endpoint is there, that writes are let
// through and that the connection works is seen by the database's own answer that it has no such row.

// probeWaits is how long a Probe waits for a bootstrap: the host shall soon hear that it is under way.
const probeWaits = 500 * time.Millisecond

// patientProbes is how many probes in a row a databeacon may leave unanswered before it is away: it has one thread, which a large
// request keeps busy. Beyond that the host would soon take this process for the one that hangs, and start it anew for nothing.
const patientProbes = 2

func (h *half) probe(ctx context.Context) error {
	at, err := h.readyWithin(ctx, probeWaits)
	if err != nil {
		return err
	}
	if err := h.announce(); err != nil {
		return err
	}
	wait, cancel := below(ctx, h.timeout)
	defer cancel()
	was, puts, quiet := h.glance()
	l, err := h.ledger(wait, at, ports.ClassProbe)
	if err == nil && quiet {
		h.compare(at, &l, was, puts)
		if err := h.announce(); err != nil {
			return err
		}
	}
	if err == nil {
		err = h.touch(wait, at)
	}
	err = h.missed(at, h.heed(at, err))
	if ended := ctx.Err(); err != nil && ended != nil {
		return ports.Wrap(ports.CodeOf(ended), "meadowproxy: probe", ended)
	}
	return err
}

// missed counts the probes that a databeacon leaves unanswered.
func (h *half) missed(at *hold, err error) error {
	if !unanswered(err) {
		h.misses.Store(0)
		return err
	}
	if h.misses.Add(1) <= patientProbes {
		return ports.Errorf(ports.Deadline, "meadowproxy: probe", "the databeacon %q has not answered in time: %v", at.bound.beacon, err)
	}
	return away("the databeacon %q is connected and does not answer: %v", at.bound.beacon, err)
}

// unanswered says whether an error is that there was no answer; a read that had none is told as one that cannot be made now.
func unanswered(err error) bool {
	return err != nil && (ports.CodeOf(err) == ports.Deadline || ports.CodeOf(ports.AsError(err).Cause) == ports.Deadline)
}

// nobody is an identity that no row has: the largest that every engine can look for.
const nobody = 1<<31 - 1

// firsts are the tables by whose endpoints a Probe tries to write.
var firsts = map[ports.Family]*ports.Table{ports.Queue: ports.Items, ports.Manifest: ports.Manifests}

func (h *half) touch(ctx context.Context, at *hold) error {
	t := firsts[h.family]
	body := []byte(`{"` + t.Engine[0].Name + `":` + strconv.Itoa(nobody) + `,"Status":""}`)
	r, err := at.request(ctx, ports.ClassProbe, http.MethodPut, at.bases[t.Name], body, "")
	if err != nil {
		return err
	}
	f, m := r.readFault()
	if m == faultMissing {
		return nil
	}
	e := *ports.AsError(f.err("meadowproxy: probe", m))
	if e.Code.Permanent() {
		e.Code = ports.Unavailable
	}
	return &e
}
