package acceptance

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"holdfast/internal/e2e"
	"holdfast/internal/hostile"
)

// siege is a host with hostile followers.
type siege struct {
	*mirrored
	ordeals  []ordeal
	programs map[hostile.Fault]hostile.Program
}

func besiege(t *testing.T, ordeals []ordeal) {
	s := &siege{ordeals: ordeals}
	var faults []hostile.Fault
	for _, o := range ordeals {
		faults = append(faults, o.fault)
	}
	s.programs = plant(t, faults...)
	setup := e2e.Mirrored("mirror")
	setup.Config = strings.Replace(setup.Config, `["mirror"`, fmt.Sprintf(`["%s", "mirror"`, join(faults, `", "`)), 1)
	for _, o := range ordeals {
		setup.Config += fmt.Sprintf("backend \"sqlite\" %q {\n  path         = \"%[1]s.db\"\n  plugin       = %q\n  memory_limit = \"300MiB\"\n}\n", o.fault, s.programs[o.fault].Path)
		if o.early {
			s.begin(t, o.fault)
		}
	}
	h := e2e.StartWith(t, setup)
	s.mirrored = &mirrored{history: historyOf(t, h), host: h}
	s.write("old", false)
	e2e.Await(t, "the followers that are well have everything", s.wellCopied)

	live := e2e.StartWorkload(t, h.Client(), 50*time.Millisecond)
	reads := startReaders(t, h, 4)
	files := s.files()
	for _, o := range s.ordeals {
		if !o.early {
			s.begin(t, o.fault)
		}
		switch o.fault {
		case hostile.MutePosition, hostile.AnotherKind, hostile.OtherOptions, hostile.NoPowers, hostile.NoFamilies: // it shows at the next start
			h.Signal(t.Context(), string(o.fault), syscall.SIGKILL)
		case hostile.DieOnRecord:
			if a := s.client.Do(t, "QP_UpsertWorkItem", item("wi-"+hostile.Poison, "")); !a.Success {
				t.Errorf("the record that kills is answered %+v", a)
			}
		}
	}
	var asking sync.WaitGroup
	asking.Go(s.commands)
	s.watch(time.Now())
	asking.Wait()

	live.End()
	reads.end(t)
	for _, f := range live.Failures {
		t.Errorf("a write was not acknowledged: %s", f)
	}
	if live.Slowest > e2e.CallerLimit || live.Deferred > 0 {
		t.Errorf("a caller waited %s, %d of %d writes were deferred", live.Slowest, live.Deferred, live.Writes)
	}
	e2e.Await(t, "the mirror has everything", func() error { return s.mirrorAtHead(0) })
	h.Verify(t, "local", "mirror")
	live.Check()
	t.Logf("%d writes, slowest %s; %d reads, slowest %s", live.Writes, live.Slowest.Round(time.Millisecond), reads.n, reads.slowest.Round(time.Millisecond))
	if now := s.files(); now > files+filesSpare {
		t.Errorf("the host has %d files open, %d before", now, files)
	}
	if os.Getenv("HOLDFAST_SOAK") != "" {
		s.lifted()
	}
	s.ends()
}

// filesSpare is how many more files a host may have open in the end: connections of callers and of a plugin that starts.
const filesSpare = 30

// process is the host's own.
func (s *siege) process() int {
	for _, pid := range s.host.Processes() {
		if name, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); filepath.Base(name) == "holdfast" {
			return pid
		}
	}
	return 0
}

// files counts what the host has open.
func (s *siege) files() int {
	open, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.process()))
	return len(open)
}

// commands asks as a person does. A command talks to the host or looks at the plugins itself, and ends whatever they do.
func (s *siege) commands() {
	s.Helper()
	limits := map[string]time.Duration{"status": busy, "backends": busy, "doctor": 2 * unready}
	if s.programs[hostile.Flood].Path != "" {
		delete(limits, "doctor") // which starts each plugin once more: too much for a test where they burden the machine
	}
	for command, limit := range limits {
		began := time.Now()
		out, code := s.host.Run(s, command)
		if took := time.Since(began); took > limit+busy {
			s.Errorf("holdfast %s took %s", command, took)
		} else {
			s.Logf("holdfast %s took %s, exit code %d\n%s", command, took.Round(time.Millisecond), code, out)
		}
		for _, o := range s.ordeals {
			if !strings.Contains(out, string(o.fault)) {
				s.Errorf("holdfast %s does not tell of %s", command, o.fault)
			}
		}
	}
}

func join(faults []hostile.Fault, with string) string {
	var names []string
	for _, f := range faults {
		names = append(names, string(f))
	}
	return strings.Join(names, with)
}

func (s *siege) begin(t *testing.T, f hostile.Fault) {
	t.Helper()
	if err := s.programs[f].Begin(); err != nil {
		t.Fatal(err)
	}
}

// wellCopied is an error while a follower that works lacks something.
func (s *siege) wellCopied() error {
	status, err := s.host.Status(s.Context())
	if err != nil {
		return err
	}
	for _, b := range status.Backends {
		if slices.ContainsFunc(s.ordeals, func(o ordeal) bool { return o.early && string(o.fault) == b.Name }) {
			continue
		}
		for _, f := range b.Followers {
			if f.Phase != "ready" || f.Behind > 0 {
				return fmt.Errorf("%s, %s is %s: behind by %d; %s", b.Name, f.Family, f.Phase, f.Behind, f.Detail)
			}
		}
	}
	return nil
}

// mirrorAtHead is an error when the mirror lags by more than a time, or at all with 0.
func (s *siege) mirrorAtHead(most time.Duration) error {
	b, err := s.host.Backend(s.Context(), "mirror")
	if err != nil {
		return err
	}
	for _, f := range b.Followers {
		if f.State != "bootstrapped" || f.Phase == "lagging" || most == 0 && f.Behind > 0 {
			return fmt.Errorf("the mirror is %s, behind by %d in %s: %s", f.Phase, f.Behind, f.Family, f.Detail)
		}
	}
	return nil
}

// watch looks until the status has told every fault, and holds it to its time.
func (s *siege) watch(began time.Time) {
	s.Helper()
	w := telling{wanted: map[hostile.Fault]*regexp.Regexp{}, at: map[hostile.Fault]time.Time{}}
	for _, o := range s.ordeals {
		if o.told != "" {
			w.wanted[o.fault] = regexp.MustCompile(o.told)
		}
	}
	deadline := time.After(unready + 10*time.Second)
	for {
		missing, err := w.look(s.host)
		if err != nil {
			s.Fatal(err)
		}
		if err := s.mirrorAtHead(tellIn); err != nil {
			s.Error(err)
		}
		if len(missing) == 0 && time.Since(began) > silence {
			break
		}
		select {
		case <-time.After(20 * time.Millisecond):
			continue
		case <-deadline:
		}
		for _, f := range missing {
			s.Errorf("the status does not tell of %s: %s", f, w.last[string(f)])
		}
		break
	}
	if w.slow > busy {
		s.Errorf("a status took %s", w.slow)
	}
	for _, o := range s.ordeals {
		seen, at := s.programs[o.fault].Seen(), w.at[o.fault]
		if len(seen) == 0 && o.fault != hostile.Deaf { // whose time comes at the end
			s.Errorf("%s never went wrong", o.fault)
		}
		if len(seen) == 0 {
			continue
		}
		from := seen[0]
		if from.Before(began) && o.early {
			continue // told in time or not, nobody asked
		}
		if late := at.Sub(from); o.told != "" && late > o.shows+tellIn+busy {
			s.Errorf("%s was told after %s", o.fault, late)
		} else if o.told != "" {
			s.Logf("%s was told after %s", o.fault, late.Round(time.Millisecond))
		}
	}
	if testing.Verbose() {
		for _, o := range s.ordeals {
			s.Logf("%s: %s", o.fault, w.last[string(o.fault)])
		}
	}
}

// ends stops the host, which must leave nothing.
func (s *siege) ends() {
	s.Helper()
	const most = 250 << 10 // KiB
	if peak := memory(s.process(), "VmHWM"); peak == 0 || peak > most {
		s.Errorf("the host held %d MiB", peak>>10)
	}
	began := time.Now()
	s.host.Stop(s)
	if took := time.Since(began); took > 10*time.Second {
		s.Errorf("the stop took %s", took)
	} else {
		s.Logf("the stop took %s", took.Round(time.Millisecond))
	}
	if s.programs[hostile.Flood].Path != "" && !strings.Contains(s.host.Log(), "logs too much") {
		s.Error("the log does not say that it left out lines of the flood")
	}
	noneLeft(s, filepath.Dir(s.host.Data()))
	for _, variable := range s.host.Command().Env {
		if dir, is := strings.CutPrefix(variable, "XDG_RUNTIME_DIR="); is {
			if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) > 0 {
				s.Errorf("left behind are %v", left)
			}
		}
	}
}

// memory reads a size of /proc/PID/status, in KiB.
func memory(pid int, name string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}
