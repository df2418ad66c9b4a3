package conformance

import (
	"context"
	"encoding/json"
	"time"

	"holdfast/ports"
)

// Subject is how the suite gets at what it judges.
type Subject struct {
	// Open gives the backend, configured. What it keeps belongs below c.DataDir: a new folder for each case, and the same one
	// again after Close or Kill.
	Open func(ctx context.Context, c ports.Configuration) (ports.Backend, error)

	// Kill ends a backend at once, as SIGKILL ends a process. nil: nothing can, and the cases that need it are left out.
	Kill func(b ports.Backend)

	// Ended says how a backend ended that nobody had told to, after Close or Kill; "" when it did not. nil: nothing can tell.
	Ended func(b ports.Backend) string

	// Options go into Configuration.Options. "{case}" in them becomes a word of each case's own, for a store that is not a
	// file: the name of a schema, a prefix.
	Options json.RawMessage

	// Patience is how long one call may take before the case fails; 0 means 10 seconds. A whole case may take six times as
	// long, and one with the largest records six times that.
	Patience time.Duration

	// Trace gives what crossed to a backend and back since it was opened, in the words of its wire; nil: the calls as Go has them.
	Trace func(b ports.Backend) []Exchange

	here bool // the backend runs in this process
}

// Exchange is one call and its answer, as people read them.
type Exchange struct {
	Call    string // the method
	Request string // close to JSON: bodies as they are, empty fields left out, what is long cut
	Answer  string // "" after an error
	Err     string // "" or the code and the text of the error
}

const usualPatience = 10 * time.Second

func (s *Subject) patience() time.Duration {
	if s.Patience > 0 {
		return s.Patience
	}
	return usualPatience
}

func (s *Subject) ended(b ports.Backend) string {
	if s.Ended == nil {
		return ""
	}
	return s.Ended(b)
}

// limit is how long a case may take.
func (s *Subject) limit(c *Case) time.Duration {
	if c.Large {
		return 36 * s.patience()
	}
	return 6 * s.patience()
}

// InProcess judges a backend of this process. Close stands for its end; nothing stands for its death.
func InProcess(fresh func() ports.Backend) Subject {
	return Subject{here: true, Open: func(ctx context.Context, c ports.Configuration) (ports.Backend, error) {
		b := fresh()
		if configurer, has := b.(ports.Configurer); has {
			if err := configurer.Configure(ctx, c); err != nil {
				return nil, err
			}
		}
		return b, nil
	}}
}
