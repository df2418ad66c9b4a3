package process

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"

	"holdfast/ports"
)

// What is known to break a host of plugins, and the test that breaks when its guard goes:
//
//	a line on stderr that go-plugin's reader panics on     FuzzWhateverIsWrittenToStderr, TestWhateverAPluginPrintsTheHostLives
//	a stop that waits for a frozen plugin                  TestStopEndsAnyPluginWithinItsBound, TestKillEndsAPluginAtOnceWhateverItDoes
//	a ping without a limit                                 TestASilentPluginIsToldAfterTheFirstCheckThatItDoesNotAnswer, TestAHungPluginIsKilledAndFollowed
//	a plugin that freezes on the way up                    TestAPluginThatFreezesOnItsWayUpIsGivenUp
//	plugins that outlive a killed host                     TestAKilledHostTakesItsPluginAlong
//	children of plugins that outlive them                  TestThePluginsOwnChildrenEndWithIt, TestWhatLeavesThePluginsGroupEndsWithItToo
//	Ctrl-C that ends plugins before their host             TestCtrlCIsTheHostsAlone
//	a banner before the handshake                          TestWhateverAPluginPrintsTheHostLives, TestAMegabyteBeforeTheHandshakeIsNoHandshake
//	a certificate in the handshake                         TestACertificateInTheHandshakeDoesNotEndTheHost
//	a flood that fills a pipe                              TestAMegabyteWithoutANewlineHoldsNothingUp
//	a socket's path over the system's limit                TestTooLongARunDirectoryIsToldBeforeTheLaunch
//	sockets and folders of dead plugins                    TestFiftyDeathsLeaveNothingBehind
//	messages over gRPC's 4 MiB                             TestAPluginKeepsWhatItIsGiven
//	calls that a stop cuts off                             TestAWriteUnderWayIsFinishedBeforeTheStop, TestAnAnswerUnderWayIsHeardBeforeTheStop
//	a checksum that is good for one launch, or looked up   TestALockedPluginStartsAgainAndAgainUntilItsFileIsAnother,
//	  before the file is exchanged                           TestAFileThatChangesBetweenTheLookAndTheStartIsNotRun
//	the host's secrets in a plugin's environment           TestAPluginSeesNothingOfTheHostsEnvironment
//	versions that do not fit                               TestAHostAndAPluginSpeakTheHighestVersionThatBothKnow
//	errors that lose their code                            TestEveryErrorMeansTheSameOnBothSides (adapters/wire)
//	a panic in a call that ends the process                TestAPanicInACallFailsThatCallAlone
//	go-plugin's broker, which leaks                        TestNobodyUsesTheBroker
//	prints of a Go author that block                       TestWhateverAPluginPrintsTheHostLives
//	process-wide lists of clients                          TestTwoPluginsOfOneHostDoNotKnowEachOther
//	connections that gRPC mends for minutes                TestFiftyDeathsLeaveNothingBehind
//	errors in the log of an ordinary stop                  TestStartAndStopAreTwoLinesAtInfo
//	sockets that other users reach                         TestARunDirectoryIsTheUsersOwnAndGoesAway
//	a plugin that is replaced while it runs                TestAPluginIsReplacedByARenameWhileItRuns
//	a log that only the plugin's lines are in              TestAFloodOfLinesIsCounted
//	memory without a limit                                 TestAPluginThatEatsMemoryIsKilledAtItsLimit

func TestAPluginThatFreezesOnItsWayUpIsGivenUp(t *testing.T) {
	t.Parallel()
	for habit, text := range map[string]string{
		"freeze-before": "printed no handshake within 1s",
		"freeze-in":     "printed no handshake within 1s",
		"freeze-after":  "gave no answer to Describe within 1s",
	} {
		t.Run(habit, func(t *testing.T) {
			t.Parallel()
			spec := specOf(t, hclog.NewNullLogger(), habit)
			numbers := quick
			numbers.start = time.Second
			began := time.Now()
			_, err := launch(t.Context(), &spec, spec.Logger, &numbers, func(step) {})
			if err == nil || !strings.Contains(err.Error(), text) || ports.CodeOf(err).Permanent() {
				t.Errorf("got %v", err)
			}
			if took := time.Since(began); took > numbers.start+2*numbers.end+time.Second {
				t.Errorf("it took %s", took)
			}
			if left := leftIn(t, spec.RunDir); len(left) != 0 {
				t.Errorf("it left %v", left)
			}
			if left := started(spec.RunDir); len(left) != 0 {
				t.Errorf("processes %v are left", left)
			}
		})
	}
}

// leftIn gives what is in a run directory beside its lock.
func leftIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if e.Name() != lockName {
			names = append(names, e.Name())
		}
	}
	return names
}

// started gives the processes that were started with a run directory and are alive.
func started(dir string) (pids []int) {
	environs, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if err == nil && bytes.Contains(environ, []byte(dir+"/")) && alive(pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestFiftyDeathsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	p := prepare(t, specOf(t, hclog.NewNullLogger()))
	p.timing.healthy = 0 // each death is the first
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		p.mu.Lock()
		dying := p.present
		p.mu.Unlock()
		if err := syscall.Kill(dying.pid(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		starts := p.Status().Starts
		eventually(t, 10*time.Second, "the next child answers", func() bool {
			return p.Status().Starts > starts && p.Probe(t.Context(), ports.Queue) == nil
		})
		if state := dying.conn.GetState(); state != connectivity.Shutdown {
			t.Fatalf("the connection of the dead one is %s", state)
		}
		if left := leftIn(t, p.spec.RunDir); len(left) != 1 {
			t.Fatalf("the run directory has %v", left)
		}
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if left := leftIn(t, p.spec.RunDir); len(left) != 0 {
		t.Errorf("the run directory has %v", left)
	}
	if left := started(p.spec.RunDir); len(left) != 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestWhatLeavesThePluginsGroupEndsWithItToo(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Process) error{
		"stopped": func(_ *testing.T, p *Process) error { return p.Close() },
		"killed":  func(t *testing.T, p *Process) error { return syscall.Kill(pidOf(t, p), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, hclog.NewNullLogger(), "stray")
			eventually(t, 5*time.Second, "it has forked", func() bool { return len(started(p.spec.RunDir)) == 2 })
			all := started(p.spec.RunDir)
			if err := end(t, p); err != nil {
				t.Fatal(err)
			}
			eventually(t, 5*time.Second, "both are gone", func() bool { return !slices.ContainsFunc(all, alive) })
		})
	}
}

func TestCtrlCIsTheHostsAlone(t *testing.T) {
	t.Parallel()
	base := shortDir(t)
	host := exec.Command(self(t), asHost, base, "stops-on-interrupt", "mortal")
	host.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Fscan(out, &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(-host.Process.Pid, syscall.SIGINT); err != nil { // as a terminal does
		t.Fatal(err)
	}
	said, err := io.ReadAll(out)
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Wait(); err != nil || strings.TrimSpace(string(said)) != "the last write is stored" {
		t.Errorf("the host said %q and ended with %v", said, err)
	}
	if alive(pid) {
		t.Error("the plugin is still there")
	}
}

func TestAMegabyteBeforeTheHandshakeIsNoHandshake(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger(), "prints-first")
	if err := put(t.Context(), p, "a"); err != nil {
		t.Error(err)
	}
}

func TestACertificateInTheHandshakeDoesNotEndTheHost(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger(), "certificate")
	if err := put(t.Context(), p, "a"); err != nil {
		t.Error(err)
	}
}

func TestAMegabyteWithoutANewlineHoldsNothingUp(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger())
	for range 3 {
		ctx, cancel := withTimeout(t, 10*time.Second)
		if err := put(ctx, p, "flood"); err != nil {
			t.Error(err)
		}
		cancel()
	}
}

func TestAWriteUnderWayIsFinishedBeforeTheStop(t *testing.T) {
	t.Parallel()
	log := &journal{}
	p := prepare(t, specOf(t, log.logger(hclog.Info)))
	p.timing.drain, p.timing.answer = 10*time.Second, 10*time.Second
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	stored := make(chan error, 1)
	go func() { stored <- put(t.Context(), p, "slow") }()
	eventually(t, 5*time.Second, "it is under way", func() bool { return strings.Contains(log.String(), "the slow write has begun") })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-stored; err != nil {
		t.Errorf("the write: %v", err)
	}
}

func TestAnAnswerUnderWayIsHeardBeforeTheStop(t *testing.T) {
	t.Parallel()
	log := &journal{}
	p := prepare(t, specOf(t, log.logger(hclog.Info)))
	p.timing.answer = 10 * time.Second
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	big := ports.Row{Kind: ports.KindItem, Key: "big", Body: make([]byte, 70<<20)}
	if _, err := p.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{big}}); err != nil {
		t.Fatal(err)
	}
	read := make(chan error, 1)
	go func() {
		_, err := p.Item(t.Context(), "big")
		read <- err
	}()
	eventually(t, 5*time.Second, "it is under way", func() bool { return strings.Contains(log.String(), "the big read has begun") })
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-read; err != nil {
		t.Errorf("the read: %v", err)
	}
}

func TestTwoPluginsOfOneHostDoNotKnowEachOther(t *testing.T) {
	t.Parallel()
	one, two := run(t, hclog.NewNullLogger()), run(t, hclog.NewNullLogger())
	pid := pidOf(t, two)
	one.Kill()
	if err := one.Probe(t.Context(), ports.Queue); ports.CodeOf(err) != ports.BackendGone {
		t.Errorf("the first: %v", err)
	}
	if err := two.Probe(t.Context(), ports.Queue); err != nil || pidOf(t, two) != pid {
		t.Errorf("the second: %v", err)
	}
}

func TestAPluginIsReplacedByARenameWhileItRuns(t *testing.T) {
	t.Parallel()
	spec := specOf(t, hclog.NewNullLogger())
	text, err := os.ReadFile(self(t))
	if err != nil {
		t.Fatal(err)
	}
	spec.Path = filepath.Join(spec.RunDir, "p")
	if err := os.WriteFile(spec.Path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	p := prepare(t, spec)
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	pid := pidOf(t, p)
	if f, err := os.OpenFile(spec.Path, os.O_WRONLY, 0); err == nil {
		_ = f.Close()
		t.Error("the system lets a running program be written to")
	}
	install(t, spec.Path, "exec "+self(t)+` "$@"`)
	if err := p.Probe(t.Context(), ports.Queue); err != nil || pidOf(t, p) != pid {
		t.Errorf("the old one: %v", err)
	}
	p.Restart("there is a new one")
	eventually(t, 10*time.Second, "the new one answers", func() bool { s := p.Status(); return s.Running && s.PID != pid })
}

func TestAFileThatIsBeingWrittenIsToldAndTriedAgain(t *testing.T) {
	t.Parallel()
	spec := script(t)
	writing, err := os.OpenFile(spec.Path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := prepare(t, spec)
	p.Start()
	want := "start tape: " + spec.Path + " is being written; replace a plugin by renaming a complete file over it"
	if err := p.Await(t.Context()); err == nil || err.Error() != want || ports.CodeOf(err) != ports.Unavailable {
		t.Errorf("got %v", err)
	}
	if err := writing.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "it runs", func() bool { return p.Status().Running })
}

func TestNobodyUsesTheBroker(t *testing.T) {
	t.Parallel()
	opened := ""
	open := func(_ context.Context, _ *grpc.StreamDesc, _ *grpc.ClientConn, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
		opened = method
		return nil, nil
	}
	if _, err := withoutBroker(t.Context(), nil, nil, "/plugin.GRPCBroker/StartStream", open); ports.CodeOf(err) != ports.Unimplemented || opened != "" {
		t.Errorf("the broker's stream: %v", err)
	}
	if _, err := withoutBroker(t.Context(), nil, nil, "/plugin.GRPCStdio/StreamStdio", open); err != nil || opened == "" {
		t.Errorf("another stream: %v", err)
	}
	named := regexp.MustCompile(`(\w+) \*plugin\.GRPCBroker`)
	for _, pattern := range []string{"*.go", "../wire/*.go", "../../plugins/sdk/*.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", pattern, files, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range named.FindAllSubmatch(text, -1) {
				if string(use[1]) != "_" {
					t.Errorf("%s takes a broker: %s", file, use[0])
				}
			}
		}
	}
}
