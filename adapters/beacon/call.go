package beacon

import (
	"context"
	"strings"
	"time"

	"holdfast/ports"
)

// One work of a beacon: how long it may take, and what went wrong with it on the way.

// The members of Settings are WorkItem, Event, Attempt, Patch, Manifest, WorkItemHash, AttemptNumber, RunHash and Limit: none
// that the stock client treats specially (SourceURL, SourceFilename, OutputFilename, OutputFile, ReturnOutputAsBase64,
// Command, AffinityKey).

// member is one member of Settings.
type member struct {
	name  string
	value []byte
}

func text(name, value string) member { return member{name, ports.AppendQuoted(nil, value)} }

func settingsOf(members ...member) []byte {
	size := 2
	for _, m := range members {
		size += len(m.name) + len(m.value) + 4
	}
	dst := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(ports.AppendQuoted(dst, m.name), ':')
		dst = append(dst, m.value...)
	}
	return append(dst, '}')
}

// below gives a context that ends before the caller's own, so that what the backend has to say is still heard.
func below(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if deadline, bound := ctx.Deadline(); bound {
		left := time.Until(deadline)
		most = min(most, left-min(left/10, 50*time.Millisecond))
	}
	return context.WithTimeout(ctx, most)
}

// call has the beacon do one work. A write whose outcome nobody knows fails with Deadline or Canceled.
func (s *seat) call(ctx context.Context, action string, class ports.WorkClass, members ...member) (reply, error) {
	ctx, cancel := below(ctx, s.half.timeout)
	defer cancel()
	answer, err := s.half.fleet.mesh.Dispatch(ctx, ports.Work{
		Beacon: s.name, Session: s.session, Capability: s.half.capability, Action: action, Settings: settingsOf(members...), Class: class,
	})
	if err != nil {
		return reply{}, onTheWay(action, err)
	}
	return readReply(action, answer)
}

// onTheWay says what a work that was not answered means.
func onTheWay(action string, err error) error {
	e := ports.AsError(err)
	code := e.Code
	switch code {
	case ports.BackendGone: // it is the beacon that is gone, and not this process
		if code = ports.Deadline; strings.Contains(action, "_Get") {
			code = ports.Unavailable
		}
	case ports.TooLarge, ports.Deadline, ports.Canceled, ports.Unavailable, ports.Full:
	case ports.Invalid:
		if e.Field == "Settings" { // a record that cannot travel
			break
		}
		code = ports.Unavailable // the beacon stopped offering the capability
	default:
		code = ports.Unavailable
	}
	return &ports.Error{Code: code, Op: "beacon: " + action, Message: e.Message, Limit: e.Limit, Size: e.Size, Cause: err}
}

// unknown says whether nobody knows what became of a write that ended so.
func unknown(err error) bool {
	switch ports.CodeOf(err) {
	case ports.Deadline, ports.Canceled, ports.Internal:
		return err != nil
	}
	return false
}
