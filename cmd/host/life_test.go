package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"google.golang.org/grpc"
	healthcheck "google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/types/known/emptypb"

	"holdfast/adapters/process"
	"holdfast/adapters/wire"
	"holdfast/internal/reference"
	"holdfast/plugins/conformance"
	"holdfast/ports"
)

// A plugin without the SDK: this binary under the name bare-plugin. It keeps the contract of a plugin's life but for the one
// part that its argument names.

func serveBare() {
	if os.Getenv(wire.CookieKey) != wire.CookieValue {
		if !has("mute") {
			fmt.Fprintln(os.Stderr, "a plugin of holdfast")
		}
		if has("succeeds") {
			os.Exit(0)
		}
		os.Exit(1)
	}
	if !has("heeds") {
		signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	}
	if has("forks") {
		child := exec.Command("sleep", "60")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		child.Stdout, child.Stderr = os.Stdout, os.Stderr // so that they stay open
		if err := child.Start(); err != nil {
			panic(err)
		}
	}
	if has("talks") {
		fmt.Println("*** welcome ***")
	}
	path := filepath.Join(os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), "s")
	if has("elsewhere") {
		path = filepath.Join(os.Args[2], strconv.Itoa(os.Getpid()))
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	if has("leaves") {
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
	}
	server := bareServer()
	fmt.Printf("1|1|unix|%s|grpc|\n", path)
	if !has("stays") {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			_ = os.Remove(path)
			os.Exit(0)
		}()
	}
	_ = server.Serve(listener)
	if has("fails") {
		os.Exit(4)
	}
	if has("hangs") {
		select {}
	}
}

func bareServer() *grpc.Server {
	options := wire.ServerOptions(hclog.NewNullLogger())
	if has("small") {
		options = append(options, grpc.MaxRecvMsgSize(4<<20))
	}
	server := grpc.NewServer(options...)
	var disks reference.Disks
	wire.Register(server, disks.New(), hclog.NewNullLogger())
	checks := healthcheck.NewServer()
	if !has("ill") {
		checks.SetServingStatus("plugin", grpc_health_v1.HealthCheckResponse_SERVING)
	}
	grpc_health_v1.RegisterHealthServer(server, checks)
	if has("deaf") {
		return server
	}
	shutdown := func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
		go server.GracefulStop()
		return &emptypb.Empty{}, nil
	}
	server.RegisterService(&grpc.ServiceDesc{
		ServiceName: "plugin.GRPCController", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "Shutdown", Handler: shutdown}},
	}, nil)
	return server
}

func TestEachPartOfAPluginsLifeIsJudged(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("bare-plugin")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := os.MkdirTemp("", "hf-bare-") // short, for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(elsewhere) })
	everything := []string{"children", "handshake", "health", "host-gone", "in-time", "signals", "stop", "tidy"}
	var all sync.WaitGroup
	slots := make(chan struct{}, 5) // their limits are short, and all at once would starve each other
	for fault, want := range map[string][]string{
		"":          nil,
		"mute":      {"by-hand"},
		"succeeds":  {"by-hand"},
		"talks":     {"handshake"},
		"forks":     {"children"},
		"elsewhere": everything,
		"heeds":     {"signals"},
		"stays":     {"host-gone"},
		"small":     {"large-message"},
		"ill":       {"health", "signals"},
		"deaf":      {"children", "stop", "tidy"},
		"hangs":     {"children", "stop", "tidy"},
		"fails":     {"stop"},
		"leaves":    {"tidy"},
	} {
		all.Go(func() { // they wait more than they work
			slots <- struct{}{}
			defer func() { <-slots }()
			spec := process.Spec{Path: path, Args: []string{fault, elsewhere}}
			var disks reference.Disks
			var failed, reasons []string
			_, err := conformance.Check(t.Context(), conformance.InProcess(func() ports.Backend { return disks.New() }), lifeTopic, func(r conformance.Result) {
				if r.Outcome == conformance.Failed {
					failed, reasons = append(failed, r.Case.Name), append(reasons, r.Reason...)
				}
			}, slices.DeleteFunc(life(&spec, []byte("{}")), func(k conformance.Case) bool {
				return k.Name == "large-message" && fault != "" && fault != "small" // it takes the longest
			})...)
			slices.Sort(failed)
			if diff := cmp.Diff(want, failed); diff != "" || err != nil {
				t.Errorf("one that %s: %v (-want +failed):\n%s%q", fault, err, diff, reasons)
			}
		})
	}
	all.Wait()
}
