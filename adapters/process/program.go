//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

// A file that was just written may still be open in a process that is about to become another program, for a moment. So one
// that is being written is tried a few times.
const (
	busyTries = 10
	busyTime  = 20 * time.Millisecond
)

// trailTime is how long the streams of a dead program may stay open: a grandchild that left the group can hold them.
const trailTime = 300 * time.Millisecond

// program is one start of one executable, with its process group and its standard streams.
type program struct {
	path   string
	args   []string
	memory int64 // bytes that its group may hold
	files  pinned
	log    hclog.Logger
	words  *words
	out    *output

	handshake io.ReadCloser // go-plugin's view of stdout

	mu      sync.Mutex
	pid     int          // 0 before the start
	reaped  bool         // its number may belong to another program now
	felled  bool         // killed by the host, before it ended by itself
	verdict *ports.Error // why it was killed, when that was for what it did

	ended  chan struct{} // closed when it is dead
	exited chan struct{} // closed when its streams are read, too
	state  *os.ProcessState
}

func newProgram(path string, spec *Spec, files pinned, log hclog.Logger) *program {
	reader, writer := io.Pipe()
	voice := spec.Voice
	if voice == nil {
		voice = log
	}
	said := newAllowance(voice)
	p := &program{path: path, args: spec.Args, memory: spec.Memory, files: files, log: log, words: &words{log: said}, handshake: reader, ended: make(chan struct{}), exited: make(chan struct{})}
	if p.memory <= 0 {
		p.memory = DefaultMemory
	}
	p.out = &output{speaks: slices.Sorted(maps.Keys(spec.spoken())), log: said, line: writer, fail: p.kill, exit: p.ended}
	return p
}

// start returns when the program runs or cannot. It runs until it ends by itself or kill is called.
func (p *program) start(env []string) error {
	streams, err := newStreams()
	if err != nil {
		return fmt.Errorf("pipes for a plugin: %w", err)
	}
	command := func() *exec.Cmd {
		cmd := exec.Command(p.path, p.args...)
		cmd.Env, cmd.SysProcAttr = env, attributes()
		cmd.Stdin, cmd.Stdout, cmd.Stderr = streams.stdin.r, streams.stdout.w, streams.stderr.w
		return cmd
	}
	started := make(chan error)
	go p.live(command, streams, started)
	err = <-started
	streams.closeTheirs()
	if err != nil {
		streams.closeOurs()
	}
	return err
}

// live starts the program and waits for it on one and the same thread; see attributes.
func (p *program) live(command func() *exec.Cmd, s *streams, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd, err := p.begin(command)
	for n := 1; errors.Is(err, syscall.ETXTBSY) && n < busyTries; n++ {
		time.Sleep(busyTime)
		cmd, err = p.begin(command)
	}
	started <- err
	if err != nil {
		return
	}
	var reading sync.WaitGroup
	reading.Go(func() { p.out.read(s.stdout.r) })
	reading.Go(func() {
		split := &lines{emit: p.words.take}
		_, _ = io.Copy(split, s.stderr.r)
		split.flush()
	})

	var minding sync.WaitGroup
	minding.Go(func() { p.mindMemory(p.memory, p.ended) })

	awaitExit(p.pid)
	close(p.ended)
	minding.Wait()
	p.mu.Lock()
	p.killGroup()
	p.reaped = true
	p.mu.Unlock()
	_ = cmd.Wait() // state says how it ended
	p.state = cmd.ProcessState

	late := time.AfterFunc(trailTime, s.closeOurs)
	reading.Wait()
	late.Stop()
	s.closeOurs()
	p.words.log.end()
	close(p.exited)
}

// begin is one try to start the program, unless it was killed before.
func (p *program) begin(command func() *exec.Cmd) (*exec.Cmd, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.felled {
		return nil, errors.New("stopped before it was started")
	}
	cmd := command()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p.pid = cmd.Process.Pid
	return cmd, nil
}

// kill ends the whole group, now or, before the start, instead of it.
func (p *program) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if closed(p.ended) {
		return
	}
	p.felled = true
	if p.pid != 0 && !p.reaped {
		p.killGroup()
	}
}

// condemn kills the group for what it did.
func (p *program) condemn(verdict *ports.Error) {
	p.mu.Lock()
	if p.verdict == nil && !p.reaped {
		p.verdict = verdict
	}
	p.mu.Unlock()
	p.kill()
}

// judged says whether it was condemned.
func (p *program) judged() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.verdict != nil
}

// wasFelled says whether the host killed it before it ended by itself.
func (p *program) wasFelled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.felled
}

func (p *program) killGroup() {
	if err := syscall.Kill(-p.pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		p.log.Warn("the process group of a plugin cannot be killed", "group", p.pid, "error", err)
	}
}

// dead says whether the program has ended.
func (p *program) dead() bool { return closed(p.exited) }

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// ending tells how a dead program ended.
func (p *program) ending() string {
	if p.judged() {
		return p.verdict.Message
	}
	status, ok := p.state.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return fmt.Sprintf("was ended by signal %d (%s)", status.Signal(), status.Signal())
	}
	return fmt.Sprintf("exited with code %d", p.state.ExitCode())
}

// streams are the three pipes of a program.
type streams struct{ stdin, stdout, stderr pipe }

type pipe struct{ r, w *os.File }

func newStreams() (*streams, error) {
	s := &streams{}
	for _, end := range []*pipe{&s.stdin, &s.stdout, &s.stderr} {
		var err error
		if end.r, end.w, err = os.Pipe(); err != nil {
			s.closeTheirs()
			s.closeOurs()
			return nil, err
		}
	}
	return s, nil
}

// closeTheirs closes our copies of the program's ends, closeOurs the host's ends. Closing twice does nothing.
func (s *streams) closeTheirs() {
	for _, f := range []*os.File{s.stdin.r, s.stdout.w, s.stderr.w} {
		_ = f.Close()
	}
}

func (s *streams) closeOurs() {
	for _, f := range []*os.File{s.stdin.w, s.stdout.r, s.stderr.r} {
		_ = f.Close()
	}
}
