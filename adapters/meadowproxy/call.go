package meadowproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"holdfast/ports"
)

// One work of a databeacon: any action, or a request through its MeadowProxy.

const opRequest = "meadowproxy: request"

// act has the beacon do an action and gives what it put out. What had no answer fails with Deadline or Canceled when nobody knows
// what became of it, and with Unavailable when it was surely not done. What the beacon reported as failed is Unavailable as well.
func (w *way) act(ctx context.Context, class ports.WorkClass, capability, action string, settings any) (json.RawMessage, error) {
	text, err := json.Marshal(settings)
	if err != nil {
		return nil, ports.Wrap(ports.Internal, "meadowproxy: "+action, err)
	}
	return w.work(ctx, ports.Work{Beacon: w.beacon, Capability: capability, Action: action, Settings: text, Class: class})
}

func (w *way) work(ctx context.Context, work ports.Work) (json.RawMessage, error) {
	ctx, cancel := below(ctx, w.patience()+ports.TimeFor(int64(len(work.Settings))))
	defer cancel()
	answer, err := w.mesh.Dispatch(ctx, work)
	if err != nil {
		return nil, onTheWay(work.Action, err)
	}
	if answer.Failure != "" {
		return nil, failed(work.Action, answer.Failure)
	}
	return answer.Outputs, nil
}

// patience is how long a work may take, beside what its size needs.
func (w *way) patience() time.Duration {
	if w.timeout > 0 {
		return w.timeout
	}
	return usualTimeout
}

// margin is what is left of a caller's time at least for what is to be said, of a long one.
const margin = 50 * time.Millisecond

// below gives a context that ends before the caller's own, so that what is to be said is still heard.
func below(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	if deadline, bound := ctx.Deadline(); bound {
		left := time.Until(deadline)
		most = min(most, left-min(left/10, margin))
	}
	return context.WithTimeout(ctx, most)
}

// over says whether the caller's own time is over, or so nearly that a call below it has ended.
func over(ctx context.Context) bool {
	deadline, bound := ctx.Deadline()
	return ctx.Err() != nil || bound && time.Until(deadline) <= 2*margin
}

// onTheWay says what a work that was not answered means.
func onTheWay(action string, err error) error {
	e := ports.AsError(err)
	code := e.Code
	switch code {
	case ports.BackendGone: // the beacon's connection broke, and not that of this process
		code = ports.Deadline
	case ports.Deadline, ports.Canceled, ports.Unavailable, ports.Full, ports.TooLarge:
	case ports.Invalid:
		if e.Field != "Settings" { // else a record that cannot travel
			code = ports.Unavailable // the beacon stopped offering the capability
		}
	default:
		code = ports.Unavailable
	}
	return &ports.Error{Code: code, Op: "meadowproxy: " + action, Message: e.Message, Limit: e.Limit, Size: e.Size, Cause: err}
}

// forgetting are what a databeacon says that does not know any more what it was told: it was restarted.
var forgetting = []string{"allowlist", "allow list", "not live", "not connected", "not enabled", "no live connection"}

// failed says what a failure that the beacon reported means. A request that it could not even make has changed nothing.
func failed(action, failure string) error {
	e := ports.Errorf(ports.Unavailable, "meadowproxy: "+action, "the beacon failed: %s", short(failure))
	lower := strings.ToLower(failure)
	for _, words := range forgetting {
		if strings.Contains(lower, words) {
			e.Field = ports.FieldBootstrap
		}
	}
	return e
}

// reply is the answer of a database's REST interface.
type reply struct {
	status int
	body   []byte
}

// request makes one request through the beacon's MeadowProxy. Its errors are those of the way; whatever the interface answered,
// also an error of its own, is a reply.
func (w *way) request(ctx context.Context, class ports.WorkClass, method, path string, body []byte, user string) (reply, error) {
	settings := append(make([]byte, 0, quotedSize(body)+len(path)+len(user)+128), `{"Method":"`...)
	settings = append(settings, method...)
	settings = append(settings, `","Path":`...)
	settings = ports.AppendQuoted(settings, path)
	settings = append(settings, `,"RemoteUser":`...)
	settings = ports.AppendQuoted(settings, userName(user))
	if body != nil {
		settings = append(settings, `,"Body":`...)
		settings = appendQuoted(settings, body)
	}
	settings = append(settings, '}')
	outputs, err := w.work(ctx, ports.Work{Beacon: w.beacon, Capability: ports.MeadowProxy, Action: "Request", Settings: settings, Class: class})
	if err != nil {
		if method == http.MethodGet && !strings.Contains(path, "/Undelete/") && ports.CodeOf(err) == ports.Deadline && !over(ctx) {
			e := *ports.AsError(err)
			e.Code = ports.Unavailable // a read that had no answer leaves nothing in doubt
			err = &e
		}
		return reply{}, err
	}
	return readReply(outputs)
}

// quotedSize is about how long a text is as a JSON string.
func quotedSize(text []byte) int {
	return len(text) + bytes.Count(text, []byte{'"'}) + bytes.Count(text, []byte{'\\'}) + 2
}

// appendQuoted appends a text as a JSON string, piece by piece: a record can be large, and is copied often enough.
func appendQuoted(dst, text []byte) []byte {
	const piece = 64 << 10
	dst = append(dst, '"')
	for some := range slices.Chunk(text, piece) {
		at := len(dst)
		dst = ports.AppendQuoted(dst, string(some)) // with quotes of its own
		dst = append(dst[:at], dst[at+1:len(dst)-1]...)
	}
	return append(dst, '"')
}

func readReply(outputs []byte) (r reply, err error) {
	var status, body []byte
	err = ports.ScanObject(outputs, ports.MaxDepth, func(name, value []byte) error {
		switch string(name) {
		case `"Status"`:
			status = value
		case `"Body"`:
			body = value
		}
		return nil
	})
	if err == nil {
		err = json.Unmarshal(status, &r.status)
	}
	if err != nil || len(body) > 0 && body[0] != '"' {
		// A stock client runs its first action for one that it does not know, and answers whatever that gives.
		return reply{}, ports.Errorf(ports.Internal, opRequest, "the answer has no Status and Body; is it a databeacon?")
	}
	if len(body) > 0 {
		text, _ := ports.Unquote(body)
		r.body = []byte(text)
	}
	return r, nil
}

// systemUser is who writes what has no actor.
const systemUser = "ultravisor-system"

// userName is a name that can stand in a header.
func userName(user string) string {
	clean := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, user)
	if strings.TrimSpace(clean) == "" {
		return systemUser
	}
	return clean
}

// longestReason bounds what is passed on of others' words.
const longestReason = 200

func short(reason string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd"))
	if len(runes) > longestReason {
		return string(runes[:longestReason]) + "..."
	}
	return string(runes)
}
