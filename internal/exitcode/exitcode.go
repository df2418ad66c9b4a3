// Package exitcode says what the process's exit code means, the same for every command.
package exitcode

import (
	"errors"

	"holdfast/ports"
)

// The exit codes.
const (
	OK          = 0
	Failed      = 1 // it was tried and failed, or differences were found
	Usage       = 2 // the command line or the configuration is wrong
	Environment = 3 // something around does not let us: no host there, a plugin that does not start, no access
)

// Error gives an error its exit code.
type Error struct {
	Code int
	Err  error
}

// With gives err a code; nil stays nil.
func With(code int, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Code: code, Err: err}
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

// Of gives the exit code of an error: its own if it has one, else that of its ports.Code.
func Of(err error) int {
	if err == nil {
		return OK
	}
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Code
	}
	return ofCode(ports.CodeOf(err))
}

func ofCode(c ports.Code) int {
	switch c {
	case ports.Invalid:
		return Usage
	case ports.Unauthorized, ports.Unavailable, ports.BackendGone, ports.Deadline, ports.Full:
		return Environment
	}
	return Failed
}
