package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
)

func TestStopEndsAnyPluginWithinItsBound(t *testing.T) {
	t.Parallel()
	for name, upset := range map[string]func(t *testing.T, pid int){
		"one that works":         func(*testing.T, int) {},
		"one that is stopped":    func(t *testing.T, pid int) { freeze(t, pid) },
		"one that was told TERM": func(_ *testing.T, pid int) { _ = syscall.Kill(pid, syscall.SIGTERM) },
		"one that was told INT":  func(_ *testing.T, pid int) { _ = syscall.Kill(pid, syscall.SIGINT) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := run(t, nil)
			pid := pidOf(t, p)
			upset(t, pid)
			began := time.Now()
			if err := p.Stop(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took > 2*quick.answer+500*time.Millisecond {
				t.Errorf("stop took %s", took)
			}
			if alive(pid) {
				t.Error("it is still there")
			}
			if p.Status().Starts != 1 {
				t.Error("it was ended before the host said so")
			}
		})
	}
}

func TestThePluginsOwnChildrenEndWithIt(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Process) error{
		"stopped": func(_ *testing.T, p *Process) error { return p.Close() },
		"killed":  func(t *testing.T, p *Process) error { return syscall.Kill(pidOf(t, p), syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log := &journal{}
			p := run(t, log.logger(hclog.Info), "fork")
			var grandchild int
			eventually(t, 5*time.Second, "it has forked", func() bool {
				_, after, found := strings.Cut(log.String(), "forked ")
				if found {
					number, _, _ := strings.Cut(after, "\n")
					grandchild, _ = strconv.Atoi(number)
				}
				return grandchild != 0
			})
			began := time.Now()
			if err := end(t, p); err != nil {
				t.Fatal(err)
			}
			eventually(t, 3*time.Second, "the grandchild is gone", func() bool { return !alive(grandchild) })
			if took := time.Since(began); took > 2*time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

func TestAKilledHostTakesItsPluginAlong(t *testing.T) {
	t.Parallel()
	for name, upset := range map[string]func(t *testing.T, pid int){
		"one that works":      func(*testing.T, int) {},
		"one that is stopped": func(t *testing.T, pid int) { freeze(t, pid) },
		"deaf":                func(*testing.T, int) {}, // to the end of its stdin
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "deaf" && runtime.GOOS != "linux" {
				t.Skip("only Linux kills it")
			}
			base, err := os.MkdirTemp("", "b")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(base)
			host := exec.Command(self(t), asHost, base, name)
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
			if pid == 0 || !alive(pid) {
				t.Fatalf("there is no plugin %d", pid)
			}
			upset(t, pid)
			_ = host.Process.Kill()
			_ = host.Wait()
			eventually(t, time.Second, "the plugin is gone", func() bool { return !alive(pid) })

			if left, _ := filepath.Glob(base + "/hf-*"); len(left) != 1 {
				t.Fatalf("the host left %v", left)
			}
			dir, err := OpenRunDir(base)
			if err != nil {
				t.Fatal(err)
			}
			defer dir.Close()
			if left, _ := filepath.Glob(base + "/hf-*"); len(left) != 1 || left[0] != dir.Path() {
				t.Errorf("after a sweep there are %v", left)
			}
		})
	}
}

// beHost runs a plugin until it is killed.
func beHost(args []string) {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	dir, err := OpenRunDir(args[0])
	if err != nil {
		panic(err)
	}
	p, err := New(Spec{Name: "tape", Kind: "memory", Path: path, Args: append([]string{asPlugin}, args[1:]...), RunDir: dir.Path()})
	if err != nil {
		panic(err)
	}
	p.Start()
	if err := p.Await(context.Background()); err != nil {
		panic(err)
	}
	interrupted := make(chan os.Signal, 1)
	if slices.Contains(args, "stops-on-interrupt") {
		signal.Notify(interrupted, os.Interrupt)
	}
	fmt.Println(p.Status().PID)
	<-interrupted
	if err := put(context.Background(), p, "the last"); err != nil {
		panic(err)
	}
	if s := p.Status(); s.Starts != 1 {
		panic("the plugin was ended before")
	}
	_ = p.Close()
	_ = dir.Close()
	fmt.Println("the last write is stored")
	os.Exit(0)
}
