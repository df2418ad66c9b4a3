package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"holdfast/adapters/process"
	"holdfast/internal/config"
	"holdfast/ports"
)

// late is a follower whose plugin does not start.
func late(t *testing.T, log *logged, try func() error) *follower {
	t.Helper()
	return &follower{
		backend: &config.Backend{Name: "mirror", Plugin: filepath.Join(t.TempDir(), "plugin")},
		log:     hclog.New(&hclog.LoggerOptions{Output: log}),
		prepare: func(context.Context) (*process.Process, error) { return nil, try() },
	}
}

// logged keeps what is logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func TestAFollowerThatDoesNotStartSaysWhyAndIsTriedAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		err   error
		given bool
		tries int64 // in the first minute
	}{
		{"what may pass", ports.Errorf(ports.Unavailable, "plugin", "it dies"), false, 6}, // after 0, 1, 3, 7, 15 and 31 s
		{"what cannot start as it is", ports.Errorf(ports.Invalid, "plugin", "it dies"), true, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				log := &logged{}
				var tries atomic.Int64
				f := late(t, log, func() error { tries.Add(1); return c.err })
				if got := f.health(); got.Running || got.Detail != "" {
					t.Errorf("before the start: %+v", got)
				}
				f.start()
				<-time.After(time.Minute) // in the bubble: it takes no time
				if got := f.health(); got.Running || got.GivenUp != c.given || got.Detail != "plugin: it dies" {
					t.Errorf("%+v", got)
				}
				if _, err := f.Put(t.Context(), ports.Batch{}); ports.CodeOf(err) != ports.BackendGone || !strings.Contains(err.Error(), "mirror: plugin: it dies") {
					t.Errorf("a call gives %v", err)
				}
				if err := f.stop(t.Context()); err != nil || tries.Load() != c.tries {
					t.Errorf("%d tries, stopped with %v", tries.Load(), err)
				}
				if n := log.count("gets no copies"); n != 1 {
					t.Errorf("it was logged %d times", n)
				}
			})
		})
	}
}

func TestAFollowerIsTriedAtOnceWhenItsPluginIsInstalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries atomic.Int64
		f := late(t, &logged{}, func() error { tries.Add(1); return ports.Errorf(ports.Invalid, "", "no") })
		f.start()
		synctest.Wait()
		if err := os.WriteFile(f.backend.Plugin, []byte("#!/bin/sh\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * lookAtPlugin) // in the bubble: it takes no time
		if tries.Load() != 2 {
			t.Errorf("%d tries after it was installed", tries.Load())
		}
		if err := os.Chmod(f.backend.Plugin, 0o500); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * lookAtPlugin) // in the bubble: it takes no time
		if tries.Load() != 3 {
			t.Errorf("%d tries after it was changed", tries.Load())
		}
		if err := os.Remove(f.backend.Plugin); err != nil {
			t.Fatal(err)
		}
		<-time.After(2 * lookAtPlugin) // in the bubble: it takes no time
		if err := f.stop(t.Context()); err != nil || tries.Load() != 3 {
			t.Errorf("%d tries after it was removed; %v", tries.Load(), err)
		}
	})
}

func TestAFollowerHasEveryPowerOfAProcess(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(ports.PowersOf(&process.Process{}), ports.PowersOf(&follower{})); diff != "" {
		t.Errorf("(-process +follower):\n%s", diff)
	}
}

// answering answers for each plugin by its backend's kind.
func answering(answers map[string]said) describeFunc {
	return func(ctx context.Context, _, kind string, _ hclog.Logger) (ports.Description, error) {
		a, known := answers[kind]
		if !known {
			<-ctx.Done()
			return ports.Description{}, ctx.Err()
		}
		return a.Description, a.err
	}
}

func TestOnlyWhatIsWrongWithTheFileOrTheLocalStoreStopsAStart(t *testing.T) {
	t.Parallel()
	tape := ports.Description{Kind: "tape", Options: []ports.Option{{Name: "drive", Type: ports.OptionString}}}
	const local = "backend \"sqlite\" \"local\" {\n  local = true\n}\n"
	for _, c := range []struct {
		name, text string
		answers    map[string]said
		known      []string // the backends whose options are known then
		wrong      string   // a part of the error
	}{
		{"all answer", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, []string{"archive", "local"}, ""},
		{"a follower's plugin is not there", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {err: errors.New("no such file")}}, []string{"local"}, ""},
		{"a follower's plugin hangs", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}}, []string{"local"}, ""},
		{"a follower's plugin is of another kind", local + "backend \"tape\" \"archive\" {}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: sqlite}}, nil, `of the kind "sqlite"`},
		{"an option of a follower is wrong", local + "backend \"tape\" \"archive\" {\n  driv = \"x\"\n}\n", map[string]said{"sqlite": {Description: sqlite}, "tape": {Description: tape}}, nil, `Did you mean "drive"?`},
		{"two are in one place", local + "backend \"sqlite\" \"mirror\" {}\n", map[string]said{"sqlite": {Description: sqlite}}, nil, "in the same place"},
		{"the local store's plugin is not there", local, map[string]said{"sqlite": {err: errors.New("no such file")}}, nil, `backend "local" does not start`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := &invocation{program: program{describe: answering(c.answers), stderr: &logged{}}, globals: globals{ConfigFile: configFile(t, c.text)}, ctx: t.Context()}
			cfg, err := in.load(nil)
			if err != nil {
				t.Fatal(err)
			}
			options, err := in.optionsToServe(cfg)
			var known []string
			for b := range options {
				known = append(known, b.Name)
			}
			slices.Sort(known)
			if diff := cmp.Diff(c.known, known); diff != "" || (err != nil) != (c.wrong != "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s, %v", diff, err)
			}
		})
	}
}
