package ports_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"holdfast/ports"
)

func TestAnErrorTellsItsCodeThroughEveryWrap(t *testing.T) {
	t.Parallel()
	refused := ports.InField(ports.Invalid, "Status", "is no text")
	cases := map[string]struct {
		err  error
		code ports.Code
		text string
	}{
		"none":                       {nil, "", ""},
		"wrapped none":               {ports.Wrap(ports.Internal, "op", nil), "", ""},
		"plain":                      {io.EOF, ports.Internal, "EOF"},
		"deadline":                   {fmt.Errorf("put: %w", context.DeadlineExceeded), ports.Deadline, "put: context deadline exceeded"},
		"canceled":                   {context.Canceled, ports.Canceled, "context canceled"},
		"coded":                      {refused, ports.Invalid, "Status: is no text"},
		"wrapped plain":              {ports.Wrap(ports.Unavailable, "sqlite: commit", io.EOF), ports.Unavailable, "sqlite: commit: EOF"},
		"wrapped coded":              {ports.Wrap(ports.Internal, "restore", refused), ports.Invalid, "restore: Status: is no text"},
		"wrapped twice":              {ports.Wrap(ports.Internal, "a", ports.Wrap(ports.Unavailable, "b", io.EOF)), ports.Unavailable, "a: b: EOF"},
		"coded, wrapped twice":       {ports.Wrap(ports.Internal, "a", ports.Wrap(ports.Internal, "b", refused)), ports.Invalid, "a: Status: b: is no text"},
		"wrapped by fmt":             {fmt.Errorf("while: %w", refused), ports.Invalid, "while: Status: is no text"},
		"wrapped by fmt and by us":   {ports.Wrap(ports.Internal, "op", fmt.Errorf("while: %w", refused)), ports.Invalid, "op: Status: while: is no text"},
		"deadline wrapped by a code": {ports.Wrap(ports.BackendGone, "op", context.DeadlineExceeded), ports.BackendGone, "op: context deadline exceeded"},
		"over a limit":               {ports.OverLimit("WorkItem", "bytes", 10, 11), ports.TooLarge, "WorkItem: has 11 bytes, the limit is 10"},
		"formatted":                  {ports.Errorf(ports.Full, "journal", "no room for %d", 3), ports.Full, "journal: no room for 3"},
		"a word to the host alone":   {ports.InField(ports.Unavailable, ports.FieldObstacle, "no such database"), ports.Unavailable, "no such database"},
		"without a word":             {&ports.Error{Code: ports.Conflict}, ports.Conflict, "conflict"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ports.CodeOf(c.err); got != c.code {
				t.Errorf("the code is %q, want %q", got, c.code)
			}
			switch {
			case c.err == nil && ports.AsError(c.err) != nil:
				t.Error("nothing became an error")
			case c.err != nil && c.err.Error() != c.text:
				t.Errorf("the text is %q, want %q", c.err, c.text)
			case c.err != nil && ports.AsError(c.err).Code != c.code:
				t.Errorf("as an Error its code is %q", ports.AsError(c.err).Code)
			}
		})
	}
}

func TestAWrapKeepsFieldSizesAndCause(t *testing.T) {
	t.Parallel()
	limit := ports.OverLimit("Event", "bytes", 10, 11)
	var got *ports.Error
	if err := ports.Wrap(ports.Internal, "door", limit); !errors.As(err, &got) || got.Field != "Event" || got.Limit != 10 || got.Size != 11 || got.Op != "door" {
		t.Errorf("got %+v", got)
	}
	if !errors.Is(ports.Wrap(ports.Unavailable, "read", io.ErrUnexpectedEOF), io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if limit.Op != "" {
		t.Error("wrapping changed the cause")
	}
}

func TestOnlyWhatCanNeverSucceedIsPermanent(t *testing.T) {
	t.Parallel()
	permanent := map[ports.Code]bool{ports.Invalid: true, ports.TooLarge: true, ports.Conflict: true, ports.NotFound: true, ports.Unimplemented: true}
	for _, code := range ports.Codes {
		if code.Permanent() != permanent[code] {
			t.Errorf("%s is permanent: %v", code, code.Permanent())
		}
	}
	if len(ports.Codes) != 12 {
		t.Errorf("there are %d codes", len(ports.Codes))
	}
}
