package process

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"go.uber.org/goleak"
	"google.golang.org/grpc"

	"holdfast/adapters/wire"
	"holdfast/plugins/sdk"
	"holdfast/ports"
)

// The test binary is its own plugin and its own host: started with one of these words as first argument it behaves so.
const (
	asPlugin = "be-plugin"
	asHost   = "be-host"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == asPlugin:
		bePlugin(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == asHost:
		beHost(os.Args[2:])
	}
	goleak.VerifyTestMain(m)
}

// bePlugin is a plugin with habits. Without any it is a good one.
func bePlugin(habits []string) {
	has := func(habit string) bool { return slices.Contains(habits, habit) }
	switch {
	case has("eater"):
		eat()
	case has("killed"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	case has("exit"):
		fmt.Fprintln(os.Stderr, "cannot find my tape")
		os.Exit(3)
	case has("banner"):
		fmt.Println("*** TAPE 1.0 ***")
	case has("only-banner"):
		fmt.Println("*** TAPE 1.0 ***")
		os.Exit(0)
	case has("flood"):
		for {
			fmt.Print(strings.Repeat("x", 200<<10))
		}
	case has("speaks-9"):
		fmt.Println("1|9|unix|/tmp/x|grpc|")
		select {}
	case has("speaks-1-and-2"):
		wire.Versions[2] = second
	case has("speaks-2"):
		wire.Versions = map[int]wire.Version{2: second}
	case has("elsewhere"):
		fmt.Println("1|1|unix|/tmp/x|grpc|")
		select {}
	case has("tcp"):
		fmt.Println("1|1|tcp|127.0.0.1:1|grpc|")
		select {}
	case has("netrpc"):
		fmt.Println("1|1|unix|/tmp/x|netrpc|")
		select {}
	case has("long-socket"):
		fmt.Printf("1|1|unix|/%s|grpc|\n", strings.Repeat("s", 110))
		select {}
	case has("stranger"):
		fmt.Fprintln(os.Stderr, "This binary is a plugin. These are not meant to be executed directly.")
		os.Exit(1)
	case has("mute"):
		select {}
	case has("freeze-before"):
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case has("freeze-in"):
		fmt.Print("1|1|unix|" + os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case has("freeze-after"):
		path := os.Getenv("PLUGIN_UNIX_SOCKET_DIR") + "/s"
		if _, err := net.Listen("unix", path); err != nil {
			panic(err)
		}
		fmt.Printf("1|1|unix|%s|grpc|\n", path)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case has("prints-first"):
		fmt.Println(strings.Repeat("x", 1<<20))
		fmt.Print(strings.Repeat("y\n", 1<<18))
	case has("stray"):
		child := exec.Command("sleep", "60")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
	case has("certificate"):
		offerCertificate()
	case has("deaf"):
		serveWithoutSDK()
	case has("fork"):
		child := exec.Command("sleep", "60")
		child.Env = []string{} // so that only its group tells whose it is
		child.Stdout, child.Stderr = os.Stdout, os.Stderr
		if err := child.Start(); err != nil {
			panic(err)
		}
		fmt.Fprintf(os.Stderr, "forked %d\n", child.Process.Pid)
	case has("crazy"):
		for _, line := range []string{`{"@message":5}`, `{"@level":[],"@message":"m"}`, `{"@timestamp":1,"@message":"m","@level":"info"}`, `[1,2]`, "nul \x00 \xff\xfe", strings.Repeat("y", 1<<20)} {
			fmt.Fprintln(os.Stderr, line)
		}
	}
	sdk.Serve(&memory{habits: habits})
}

// serveWithoutSDK is a plugin that does not mind whether its host lives.
func serveWithoutSDK() {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig:  cookie,
		VersionedPlugins: map[int]plugin.PluginSet{1: {wire.PluginName: deaf{}}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			return grpc.NewServer(append(options, wire.ServerOptions(sdk.Logger())...)...)
		},
	})
	os.Exit(0)
}

// offerCertificate puts a certificate into the handshake, as plugins with AutoMTLS do.
func offerCertificate() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	made, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	theirs := os.Stdout
	reader, writer, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	os.Stdout = writer
	go func() {
		line, err := bufio.NewReader(reader).ReadString('\n')
		if err != nil {
			panic(err)
		}
		handshake := strings.Join(strings.Split(line, "|")[:5], "|")
		fmt.Fprintln(theirs, handshake+"|"+base64.RawStdEncoding.EncodeToString(made))
	}()
}

type deaf struct{ taken }

func (deaf) GRPCServer(_ *plugin.GRPCBroker, server *grpc.Server) error {
	wire.Register(server, &memory{}, sdk.Logger())
	return nil
}

// eat takes 64 MiB at a time, up to 2 GiB, and keeps them.
func eat() {
	var eaten [][]byte
	for range 32 {
		eaten = append(eaten, bytes.Repeat([]byte{1}, 64<<20))
		<-time.After(50 * time.Millisecond)
	}
	<-time.After(time.Minute)
	runtime.KeepAlive(eaten)
}

// memory is a backend that keeps one row and has habits too.
type memory struct {
	habits []string
	mu     sync.Mutex
	row    ports.Row
	name   string
}

func (m *memory) Configure(_ context.Context, c ports.Configuration) error {
	if slices.Contains(m.habits, "refuse") {
		return ports.InField(ports.Invalid, "path", "lies outside the data directory")
	}
	if slices.Contains(m.habits, "configure-hangs") {
		select {}
	}
	if slices.Contains(m.habits, "mortal") {
		signal.Reset(os.Interrupt)
	}
	m.name = c.Name
	return nil
}

func (m *memory) Describe(context.Context) (ports.Description, error) {
	if slices.Contains(m.habits, "describe-hangs") {
		select {}
	}
	if slices.Contains(m.habits, "long-name") {
		return ports.Description{Kind: "memory", Version: strings.Repeat("v", 5000)}, nil
	}
	return ports.Description{Kind: "memory", Version: "1.0", Summary: "Keeps one row.", Families: ports.Families}, nil
}

func (m *memory) Probe(context.Context, ports.Family) error {
	if slices.Contains(m.habits, "panic") {
		panic("the tape is torn")
	}
	return nil
}

func (m *memory) Position(context.Context, ports.Family) (ports.Position, error) {
	return ports.Position{StoreID: m.name, Epoch: strings.Join(os.Environ(), "\n")}, nil
}

func (m *memory) Put(_ context.Context, b ports.Batch) (ports.Applied, error) {
	for _, r := range b.Rows {
		switch r.Key {
		case "die":
			fmt.Fprintln(os.Stderr, "about to die")
			os.Exit(7)
		case "die loudly":
			go panic("the reels fell off")
			select {}
		case "eat":
			eat()
		case "child eats":
			_ = exec.Command(os.Args[0], asPlugin, "eater").Run()
		case "flood": // past what the SDK does with os.Stdout
			_, _ = syscall.Write(1, bytes.Repeat([]byte{'o'}, 1<<20))
			_, _ = syscall.Write(2, bytes.Repeat([]byte{'e'}, 1<<20))
		case "slow":
			sdk.Logger().Info("the slow write has begun")
			<-time.After(500 * time.Millisecond)
		case "print":
			fmt.Println(strings.Repeat("p", 1<<20))
			fmt.Println("printed")
		case "log":
			sdk.Logger().Warn("tape is nearly full", "left", 3)
		}
		m.mu.Lock()
		m.row = r
		m.mu.Unlock()
	}
	return ports.Applied{Done: len(b.Rows)}, nil
}

func (m *memory) Item(_ context.Context, key string) (ports.Row, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.row.Key != key {
		return ports.Row{}, ports.Errorf(ports.NotFound, "memory: item", "there is no %q", key)
	}
	return m.row, nil
}

func (m *memory) Items(context.Context, ports.ItemQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Stand(context.Context, string) (ports.Standing, error) {
	return ports.Standing{StoreID: m.name}, nil
}
func (m *memory) Open(context.Context, ports.Opening) error { return nil }
func (m *memory) Events(context.Context, ports.EventQuery) (ports.Page, error) {
	return ports.Page{}, nil
}
func (m *memory) Attempts(context.Context, ports.AttemptQuery) (ports.Page, error) {
	return ports.Page{}, nil
}
func (m *memory) Manifest(context.Context, string) (ports.Row, error) { return ports.Row{}, nil }
func (m *memory) Manifests(context.Context, ports.ManifestQuery) (ports.Page, error) {
	return ports.Page{}, nil
}

func (m *memory) Commit(_ context.Context, b ports.CommitBatch) (ports.Pending, error) {
	decided := make(decided, len(b.Entries))
	for i, e := range b.Entries {
		decided[i] = ports.Decision{Seq: e.Seq, Outcome: ports.Stored}
	}
	return decided, nil
}

// Changes tells the one row, as if every change were in it.
func (m *memory) Changes(_ context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at := ports.Position{StoreID: m.name, Seqs: map[string]uint64{m.row.Change.Host: m.row.Change.Seq}}
	if q.After.Covers(at) {
		return ports.ChangePage{Through: at, End: &at}, nil
	}
	return ports.ChangePage{Rows: []ports.Row{m.row}, Through: at, End: &at}, nil
}

type decided []ports.Decision

func (d decided) Wait(context.Context) ([]ports.Decision, error) { return d, nil }

func (m *memory) Drain(ctx context.Context) error {
	if slices.Contains(m.habits, "drain-hangs") {
		sdk.Logger().Info("draining")
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (m *memory) Close() error { return nil }

// quick are numbers for tests; what they bound happens well within them.
var quick = timing{
	start: 30 * time.Second, configure: 10 * time.Second, check: 50 * time.Millisecond, answer: time.Second,
	silence: time.Hour, drain: time.Second, end: time.Second, healthy: time.Minute,
	base: 10 * time.Millisecond, limit: 200 * time.Millisecond, look: 20 * time.Millisecond,
}

// self is this test binary.
func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// runDir is a short one; t.TempDir is too long for sockets.
func runDir(t testing.TB) string {
	t.Helper()
	dir, err := OpenRunDir("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dir.Close() })
	return dir.Path()
}

// journal is a logger that remembers.
type journal struct {
	mu   sync.Mutex
	text strings.Builder
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger(level hclog.Level) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "tape", Output: j, Level: level, DisableTime: true})
}

func specOf(t testing.TB, log hclog.Logger, habits ...string) Spec {
	return Spec{
		Name: "tape", Kind: "memory", Path: self(t), Args: append([]string{asPlugin}, habits...), RunDir: runDir(t), Logger: log,
		Config: ports.Configuration{Name: "tape"},
	}
}

// run starts a plugin with habits and quick numbers, and stops it after the test.
func run(t testing.TB, log hclog.Logger, habits ...string) *Process {
	t.Helper()
	p := prepare(t, specOf(t, log, habits...))
	p.Start()
	if err := p.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func prepare(t testing.TB, spec Spec) *Process {
	t.Helper()
	p, err := New(spec)
	if err != nil {
		t.Fatal(err)
	}
	p.timing = quick
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// pidOf gives the running child. Never 0, which in a signal would mean the tests themselves.
func pidOf(t testing.TB, p *Process) int {
	t.Helper()
	s := p.Status()
	if s.PID == 0 {
		t.Fatalf("there is no child: %+v", s)
	}
	return s.PID
}

// eventually waits until something is so.
func eventually(t testing.TB, within time.Duration, what string, is func() bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-deadline.C:
			t.Fatalf("not within %s: %s", within, what)
		case <-tick.C:
		}
	}
}

// freeze stops a process and waits until every thread of it stands.
func freeze(t testing.TB, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, 5*time.Second, "the process stands", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		return err == nil && !slices.ContainsFunc(threads, func(path string) bool {
			stat, err := os.ReadFile(path)
			_, rest, _ := strings.Cut(string(stat), ") ")
			return err == nil && !strings.HasPrefix(rest, "T")
		})
	})
}

// alive says whether a process runs; a zombie that nobody reaps does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z") && syscall.Kill(pid, 0) == nil
}

func withTimeout(t testing.TB, limit time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), limit)
}

func put(ctx context.Context, p ports.Backend, key string) error {
	_, err := p.Put(ctx, ports.Batch{Family: ports.Queue, Rows: []ports.Row{{Kind: ports.KindItem, Key: key, Body: []byte("{}")}}})
	return err
}
