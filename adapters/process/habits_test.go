package process

import (
	"bufio"
	"bytes"
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
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"holdfast/adapters/wire"
	"holdfast/plugins/sdk"
)

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
	case has("closes-and-exits"): // as GNU programs do: env, for one
		_ = os.Stdout.Close()
		<-time.After(100 * time.Millisecond)
		fmt.Fprintln(os.Stderr, "cannot find my tape")
		os.Exit(7)
	case has("closes"):
		_ = os.Stdout.Close()
		select {}
	case has("listens-nowhere"):
		fmt.Printf("1|1|unix|%s/s|grpc|\n", os.Getenv("PLUGIN_UNIX_SOCKET_DIR"))
		select {}
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
