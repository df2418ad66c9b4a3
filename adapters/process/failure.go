//go:build unix

package process

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// step is how far a launch came.
type step string

const (
	handshaking step = "its handshake"
	connecting  step = "a connection"
	describing  step = "Describe"
	configuring step = "Configure"
)

// strangerText is what every plugin that is built with go-plugin says when its cookie is missing.
const strangerText = "not meant to be executed directly"

// explainLaunch says why a launch failed, from what is known of the program rather than from the error that came of it. The
// program's last lines stand behind it.
func explainLaunch(ctx context.Context, p *program, at step, limit time.Duration, err error) error {
	handshake, noise, fault := p.out.facts()
	if handshake == "" && at != handshaking {
		at = handshaking
	} else if handshake != "" && at == handshaking {
		at = connecting
	}
	said := p.words.said()
	var e *ports.Error
	switch {
	case fault != nil:
		e = about(p, ports.AsError(fault).Code, ports.AsError(fault).Message)
	case errors.Is(ctx.Err(), context.Canceled):
		return ports.Wrap(ports.Canceled, "launch", context.Canceled)
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		e = about(p, ports.Unavailable, "gave no answer to "+string(at)+" within "+limit.String()+seeMore(p, at, said))
		if at == handshaking {
			e = about(p, ports.Unavailable, "printed no handshake within "+limit.String()+describeNoise(noise)+seeMore(p, at, said))
		}
	case p.judged():
		e = about(p, ports.Full, p.ending())
	case p.dead() && at == handshaking && strings.Contains(strings.Join(said, "\n"), strangerText):
		e = about(p, ports.Invalid, "is a plugin of another program: it does not know the cookie of holdfast's backends; name one of holdfast's")
	case p.dead() && at == handshaking && strings.HasSuffix(firstLine(p.path), "\r"):
		e = about(p, ports.Invalid, p.ending()+": "+carriageReturn)
	case p.dead() && at == handshaking && p.wasFelled():
		e = about(p, ports.Unavailable, "closed its stdout without a handshake on it, and ran on"+describeNoise(noise)+seeMore(p, at, said))
	case p.dead():
		e = about(p, ports.Unavailable, p.ending()+" before "+string(at)+describeNoise(noise)+seeMore(p, at, said))
	case at != configuring && strings.Contains(ports.AsError(err).Message, "dial unix "):
		e = about(p, ports.Unavailable, "prints a handshake but does not listen on "+shown(socketOf(handshake))+"; listen first, then print the line")
	default:
		known := ports.AsError(err)
		e = about(p, known.Code, "refused "+string(at)+": "+known.Message)
		e.Field, e.Limit, e.Size = known.Field, known.Limit, known.Size
		return e
	}
	if e.Code.Permanent() {
		e.Field = "plugin"
	}
	return &obituary{brief: e, words: said}
}

// seeMore is the next step where a plugin did not say what is wrong.
func seeMore(p *program, at step, said []string) string {
	switch {
	case len(said) > 0:
		return ""
	case at != handshaking:
		return "; it said nothing on stderr, where it should say why"
	}
	return "; it said nothing on stderr, start it by hand: " + wire.CookieKey + "=" + wire.CookieValue + " " + strings.Join(append([]string{p.path}, p.args...), " ")
}

func about(p *program, code ports.Code, message string) *ports.Error {
	return &ports.Error{Code: code, Message: p.name() + " " + message}
}

// name is what people call the program: its path, and the script that an interpreter runs.
func (p *program) name() string {
	scripts := slices.DeleteFunc(slices.Clone(p.args), func(arg string) bool { return !isFile(arg) })
	return strings.Join(append([]string{p.path}, scripts...), " ")
}

// obituary is an error with the last lines of the plugin that is meant.
type obituary struct {
	brief error
	words []string
}

func (o *obituary) Unwrap() error { return o.brief }

func (o *obituary) Error() string {
	if len(o.words) == 0 {
		return o.brief.Error()
	}
	return o.brief.Error() + "; its last lines:\n  " + strings.Join(o.words, "\n  ")
}

// brief gives an error's text without the lines, and the lines.
func brief(err error) (text string, words []string) {
	if o, has := errors.AsType[*obituary](err); has {
		return o.brief.Error(), o.words
	}
	return err.Error(), nil
}
