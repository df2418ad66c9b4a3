package ports

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Code is the one vocabulary of failure. It crosses the process boundary unchanged and maps to HTTP in one table.
type Code string

const (
	Invalid       Code = "invalid"       // the caller's input can never be accepted as it is
	TooLarge      Code = "too_large"     // a limit was passed; Limit and Size say by how much
	NotFound      Code = "not_found"     // the key is unknown
	Conflict      Code = "conflict"      // it contradicts what is stored
	Unauthorized  Code = "unauthorized"  // credentials are missing, wrong or not enough
	Unavailable   Code = "unavailable"   // not now; the peer lives or will again
	BackendGone   Code = "backend_gone"  // the plugin process or its connection died
	Unimplemented Code = "unimplemented" // this backend does not offer it
	Canceled      Code = "canceled"      // the caller went away
	Deadline      Code = "deadline"      // no answer in time; the outcome is unknown
	Full          Code = "full"          // no room, by a limit or by the disk
	Internal      Code = "internal"      // a defect, here or there
)

// Codes lists the vocabulary.
var Codes = []Code{Invalid, TooLarge, NotFound, Conflict, Unauthorized, Unavailable, BackendGone, Unimplemented, Canceled, Deadline, Full, Internal}

// Permanent says that the same call can never succeed, so that only another record or another backend helps. Every other
// code is worth a retry.
func (c Code) Permanent() bool {
	switch c {
	case Invalid, TooLarge, NotFound, Conflict, Unimplemented:
		return true
	}
	return false
}

// Error is a code with its context. Its text is lower case, says what to do next where there is something to do, and never
// holds a secret or a record's body.
type Error struct {
	Code    Code
	Op      string // what was being done, for example "sqlite: commit"
	Field   string // the member, option or setting that is meant
	Message string // what is wrong and what helps
	Limit   int64  // with Size: the limit that was passed; 0 says nothing
	Size    int64  // the size of what was given, in the limit's unit
	Cause   error  // not sent across a process boundary; its text is
}

// Errorf makes an Error with a message.
func Errorf(code Code, op, format string, args ...any) *Error {
	return &Error{Code: code, Op: op, Message: fmt.Sprintf(format, args...)}
}

// InField makes an Error that names a member, option or setting.
func InField(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

// OverLimit makes the TooLarge error of a field.
func OverLimit(field, unit string, limit, size int64) *Error {
	return &Error{
		Code: TooLarge, Field: field, Limit: limit, Size: size,
		Message: fmt.Sprintf("has %d %s, the limit is %d", size, unit, limit),
	}
}

// Wrap gives a cause a code and an operation. It returns nil for a nil cause, and keeps the code, field and sizes of a
// cause that already has them.
func Wrap(code Code, op string, cause error) error {
	if cause == nil {
		return nil
	}
	if known, ok := errors.AsType[*Error](cause); ok {
		e := *known
		e.Cause = cause
		e.Op, e.Message = op, cause.Error()
		if e.Field != "" { // it stands before the message, once
			bare := *known
			bare.Field = ""
			e.Message = strings.Replace(e.Message, known.Error(), bare.Error(), 1)
		}
		return &e
	}
	return &Error{Code: code, Op: op, Message: cause.Error(), Cause: cause}
}

// Error gives "operation: field: message".
func (e *Error) Error() string {
	field := e.Field
	if signals[field] {
		field = ""
	}
	parts := make([]string, 0, 3)
	for _, p := range []string{e.Op, field, e.Message} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	if len(parts) == 0 {
		return string(e.Code)
	}
	return strings.Join(parts, ": ")
}

func (e *Error) Unwrap() error { return e.Cause }

// CodeOf gives the code of an error: that of the Error in its chain, Deadline and Canceled for context errors, Internal for
// everything else, and "" for nil.
func CodeOf(err error) Code {
	e, ours := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return ""
	case ours:
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	case errors.Is(err, context.Canceled):
		return Canceled
	}
	return Internal
}

// AsError gives the Error in the chain, or one made from the error's text and CodeOf.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: CodeOf(err), Message: err.Error(), Cause: err}
}
