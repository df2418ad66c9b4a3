package beacon

import (
	"bytes"
	"strings"

	"holdfast/ports"
)

// What a beacon's answer means. This is the one place where an answer becomes a code.

// reply is an answer that says Success, true or false, or that something failed.
type reply struct {
	outputs map[string][]byte // raw
	success bool
	reason  string
}

// readReply takes an answer apart. It fails with the code of what the beacon reported instead of an answer.
func readReply(action string, a ports.WorkAnswer) (reply, error) {
	if a.Failure != "" {
		return reply{}, ports.Errorf(meaning(a.Failure, ports.Internal), "beacon: "+action, "the beacon failed: %s", short(a.Failure))
	}
	r := reply{outputs: map[string][]byte{}}
	err := ports.ScanObject(a.Outputs, depthOfOutputs, func(name, value []byte) error {
		plain, _ := ports.Unquote(name)
		r.outputs[plain] = value
		return nil
	})
	if err != nil {
		return reply{}, ports.Errorf(ports.Internal, "beacon: "+action, "the beacon's answer is no object")
	}
	r.reason = textOf(r.outputs["Reason"])
	switch string(r.outputs["Success"]) {
	case "true":
		r.success = true
	case "false":
	default:
		// The stock client completes work of a capability or an action that it does not know as if it had done it.
		if said := textOf(r.outputs["StdOut"]); string(r.outputs["ExitCode"]) == "-1" || strings.HasPrefix(said, "Unknown ") {
			return reply{}, ports.Errorf(ports.Unimplemented, "beacon: "+action, "the beacon does not know the action: %s", short(said))
		}
		return reply{}, ports.Errorf(ports.Internal, "beacon: "+action, "the beacon's answer does not say Success; is it a persistence beacon?")
	}
	return r, nil
}

// depthOfOutputs is that of a record inside of the outputs, in a list.
const depthOfOutputs = ports.MaxDepth + 4

// refusal is why a write was answered with Success false.
func (r *reply) refusal(action string) error {
	reason := r.reason
	if reason == "" {
		reason = "it does not say why"
	}
	return ports.Errorf(meaning(r.reason, ports.Invalid), "beacon: "+action, "the beacon refused it: %s", short(reason))
}

// meanings are what stands in reasons, the first that fits. What fits none speaks of the record when it is a reason, which a
// handler thought about, and of the beacon when it is a failure, which it did not.
var meanings = []struct {
	code  ports.Code
	words []string
}{
	{ports.TooLarge, []string{"too large", "too big", "too long", "exceeds", "maximum size", "maximum length"}},
	{ports.Conflict, []string{"constraint", "unique", "duplicate", "er_dup_entry"}},
	{ports.Full, []string{"disk full", "disk is full", "no space", "enospc", "quota", "sqlite_full"}},
	{ports.Unauthorized, []string{"unauthorized", "not authorized", "permission denied", "forbidden", "eacces", "access denied"}},
	{ports.Unimplemented, []string{"unknown action", "unknown capability", "not implemented", "unsupported action", "no handler"}},
	{ports.Unavailable, []string{
		"locked", "busy", "timeout", "timed out", "econnrefused", "econnreset", "epipe", "connection", "connect ", "disconnected", "not initialized",
		"not initialised", "not ready", "unavailable", "shutting down", "closing", "is closed", "try again", "too many", "deadlock", "readonly",
		"read-only", "read only", "i/o error", "ioerr", "emfile", "out of memory", "offline",
	}},
}

func meaning(reason string, otherwise ports.Code) ports.Code {
	reason = strings.ToLower(reason)
	for _, m := range meanings {
		for _, word := range m.words {
			if strings.Contains(reason, word) {
				return m.code
			}
		}
	}
	return otherwise
}

// absent says whether a read found nothing, and not that it failed.
func (r *reply) absent(payload string) bool {
	if r.success {
		return isNull(r.outputs[payload])
	}
	reason := strings.ToLower(r.reason)
	return reason == "" && isNull(r.outputs[payload]) || strings.Contains(reason, "not found") || strings.HasPrefix(reason, "unknown work item") ||
		strings.HasPrefix(reason, "unknown manifest")
}

func isNull(raw []byte) bool { return len(raw) == 0 || bytes.Equal(raw, []byte("null")) }

// textOf is a JSON text decoded; "" for anything else.
func textOf(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	text, _ := ports.Unquote(raw)
	return text
}

// longestReason bounds what is passed on of a beacon's own words.
const longestReason = 200

func short(reason string) string {
	runes := []rune(strings.ToValidUTF8(strings.TrimSpace(reason), "\ufffd"))
	if len(runes) > longestReason {
		return string(runes[:longestReason]) + "..."
	}
	return string(runes)
}
