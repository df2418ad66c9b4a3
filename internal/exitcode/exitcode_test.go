package exitcode_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"holdfast/internal/exitcode"
	"holdfast/ports"
)

func TestTheExitCodeFollowsFromTheError(t *testing.T) {
	t.Parallel()
	want := map[ports.Code]int{
		ports.Invalid:       exitcode.Usage,
		ports.TooLarge:      exitcode.Failed,
		ports.NotFound:      exitcode.Failed,
		ports.Conflict:      exitcode.Failed,
		ports.Unauthorized:  exitcode.Environment,
		ports.Unavailable:   exitcode.Environment,
		ports.BackendGone:   exitcode.Environment,
		ports.Unimplemented: exitcode.Failed,
		ports.Canceled:      exitcode.Failed,
		ports.Deadline:      exitcode.Environment,
		ports.Full:          exitcode.Environment,
		ports.Internal:      exitcode.Failed,
	}
	for _, code := range ports.Codes {
		expected, listed := want[code]
		if !listed {
			t.Errorf("the code %q has no exit code in this table", code)
			continue
		}
		err := fmt.Errorf("outer: %w", ports.Errorf(code, "op", "cause"))
		if got := exitcode.Of(err); got != expected {
			t.Errorf("%s: exit code %d, want %d", code, got, expected)
		}
	}
	for _, c := range []struct {
		name string
		err  error
		want int
	}{
		{"no error is success", nil, exitcode.OK},
		{"an error of nobody is a failure", errors.New("oops"), exitcode.Failed},
		{"a passed deadline is the environment's", context.DeadlineExceeded, exitcode.Environment},
		{"a code given by hand rules", fmt.Errorf("outer: %w", exitcode.With(exitcode.Usage, ports.Errorf(ports.Unavailable, "", "x"))), exitcode.Usage},
		{"a code given to nil is success", exitcode.With(exitcode.Failed, nil), exitcode.OK},
	} {
		if got := exitcode.Of(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", c.name, got, c.want)
		}
	}
}
