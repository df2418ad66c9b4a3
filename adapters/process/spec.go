package process

import (
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/wire"
	"holdfast/ports"
)

// Spec says what to run and how. It is not changed after New.
type Spec struct {
	Name string   // the backend's name in the configuration
	Kind string   // what the plugin must say that it is
	Path string   // the executable; without a slash it is looked up in PATH
	Args []string // for a plugin that an interpreter runs: Path is the interpreter then

	Config ports.Configuration // what every child is configured with

	// Options gives Config.Options at each launch, now that the plugin said which ones it takes. An error is why it cannot be
	// configured. nil: Config has them already.
	Options func(ports.Description) (json.RawMessage, error)

	// Place says where an option stands in the configuration, "FILE:LINE" or "", for the refusal of one. It may be nil.
	Place func(option string) string

	// Checksums gives the SHA-256 in hex (Sum) that files must have, by absolute path; it is asked at each launch. Each of Files
	// must be there, and there may be more, such as what a script imports. nil takes any file. What it reads is among Beside.
	Checksums func() (map[string]string, error)
	Beside    []string // more files whose change is worth another try

	// Strict refuses a plugin whose files or folders anybody but this user and root may change. What everybody may change is
	// refused without it too.
	Strict bool

	// Memory is how many bytes the plugin and its children may hold together; a plugin with more is killed and started anew. 0
	// means DefaultMemory. It is enforced on Linux only.
	Memory int64

	Logger  hclog.Logger  // the plugin's lines appear in it as its own
	Voice   hclog.Logger  // gets those lines instead, where the plugin is to be heard alone; nil: Logger does
	RunDir  string        // of OpenRunDir, for the plugin's socket; "" makes one for this Process alone
	MaxWait time.Duration // between two launches of a plugin that keeps dying; 0 means 30 s

	Trace *wire.Trace // gets every call of every child, and its answer; nil: nobody looks

	speaks map[int]wire.Version // nil means wire.Versions

	// Notify is called after each change of Status. It must return at once and not call the Process. It may be nil.
	Notify func(Status)
}

// spoken gives the versions of the service that are offered to the plugin.
func (s *Spec) spoken() map[int]wire.Version {
	if s.speaks != nil {
		return s.speaks
	}
	return wire.Versions
}

// DefaultMemory is what a plugin may hold unless its Spec says otherwise.
const DefaultMemory = 2 << 30

// State is what a Process is doing.
type State string

const (
	Stopped    State = "stopped"
	Starting   State = "starting"
	Running    State = "running"
	Restarting State = "restarting" // dead; NextTry says when it is started again
	GivenUp    State = "given-up"   // it keeps dying or can never start as it is; tried every MaxWait, or at once after Retry or a changed file
)

// Status is what there is to say about a Process.
type Status struct {
	State   State
	Since   time.Time // of State
	Running bool      // a child takes calls
	PID     int       // of the running child
	Version string    // of the plugin, once it described itself
	Speaks  int       // the version of the service that was agreed on
	Starts  int       // children that became ready
	NextTry time.Time // with Restarting and GivenUp
	Detail  string    // why it does not run and when it is tried again, or that it has gone silent

	// How the last child ended that nobody had told to, or why the last launch failed, and when. Kept while the next one runs.
	Died   string
	DiedAt time.Time
	Words  []string // its last lines
}

// timing holds the numbers of supervision.
type timing struct {
	start     time.Duration // from launch to the first answer
	configure time.Duration
	check     time.Duration // between two health checks
	answer    time.Duration // for one of them
	silence   time.Duration // without an answer, after which a child is hung
	drain     time.Duration // for a child to finish what it began
	end       time.Duration // for it to exit afterwards; go-plugin itself waits 2 s
	healthy   time.Duration // of running, which clears the count of failures
	base      time.Duration // of the backoff
	limit     time.Duration // of the backoff
	look      time.Duration // between two looks at the files of a dead child
}

var usual = timing{
	start: 10 * time.Second, configure: 30 * time.Second,
	check: 2 * time.Second, answer: time.Second, silence: 10 * time.Second,
	drain: 5 * time.Second, end: 2500 * time.Millisecond,
	healthy: 3 * time.Minute, base: 100 * time.Millisecond, limit: 30 * time.Second, look: time.Second,
}
