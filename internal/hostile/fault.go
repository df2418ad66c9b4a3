package hostile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Fault is one way to go wrong.
type Fault string

// Before the first call, so that no launch succeeds while they last.
const (
	FreezeBefore Fault = "freeze-before" // prints no handshake
	FreezeIn     Fault = "freeze-in"     // prints half of it
	ExitBefore   Fault = "exit-before"   // says why on stderr and exits with 3
	SpeaksTwo    Fault = "speaks-two"    // the handshake names a protocol that no host has
	SpeaksOther  Fault = "speaks-other"  // the handshake is good, and another service answers
	AnotherKind  Fault = "another-kind"  // describes itself as a backend of another kind,
	OtherOptions Fault = "other-options" // with other options,
	NoPowers     Fault = "no-powers"     // without any power,
	NoFamilies   Fault = "no-families"   // or without families
)

// In calls.
const (
	Mute           Fault = "mute"            // answers health checks and no call
	MutePosition   Fault = "mute-position"   // answers everything but where it is
	MuteOpen       Fault = "mute-open"       // and everything but the opening of a local store
	DieOnWrite     Fault = "die-on-write"    // each write takes effect and ends it before the answer
	DieOnRecord    Fault = "die-on-record"   // a record with Poison in its key kills it
	LateShort      Fault = "late-short"      // answers each write after 3 s
	LateLong       Fault = "late-long"       // and after 20 s
	AnswerTwice    Fault = "answer-twice"    // counts the rows of a Put twice, and sends the answer of a batch twice
	WrongDone      Fault = "wrong-done"      // counts rows that never were
	WrongBatch     Fault = "wrong-batch"     // answers batches that never were
	WrongDecisions Fault = "wrong-decisions" // decides entries that never were
	Garbage        Fault = "garbage"         // reads give bodies that are no JSON,
	WrongKey       Fault = "wrong-key"       // or a record of another key
)

// By itself.
const (
	Stopped      Fault = "stopped"       // is stopped as by SIGSTOP
	ExitLater    Fault = "exit-later"    // ends after 2 s, with 0 and without a word
	Flood        Fault = "flood"         // prints 100 MB, in every form that is hard to read
	ForkInside   Fault = "fork-inside"   // hangs, and so do its children in its process group, which hold its streams
	ForkOutside  Fault = "fork-outside"  // hangs, and so do its children in a session of their own
	Deaf         Fault = "deaf"          // ignores Drain, Shutdown, SIGTERM and the end of its stdin
	EatMemory    Fault = "eat-memory"    // takes memory until something stops it
	HostStreams  Fault = "host-streams"  // writes into the pipe that the host holds, and into the host's own streams
	CloseStreams Fault = "close-streams" // closes its three streams
	FillDisk     Fault = "fill-disk"     // fills a folder beside its file
	ManyFiles    Fault = "many-files"    // holds as many files open as it may
	Unlink       Fault = "unlink"        // takes its own socket away, and the folder of it
	Litter       Fault = "litter"        // leaves sockets and folders where its own socket is, and dies
)

// Poison is what a key must contain to kill DieOnRecord.
const Poison = "poison"

// prefix is that of every backend's executable.
const prefix = "holdfast-backend-"

// Program is one link to the plugin, as its test and it itself know it.
type Program struct {
	Path  string
	Fault Fault
}

// At is the program of a fault in a folder.
func At(dir string, f Fault) Program { return Program{filepath.Join(dir, prefix+string(f)), f} }

// Self is the program that runs.
func Self() (Program, error) {
	path, err := os.Executable()
	if err != nil {
		return Program{}, err
	}
	fault, is := strings.CutPrefix(filepath.Base(path), prefix)
	if !is {
		return Program{}, fmt.Errorf("%s is not called %sFAULT", path, prefix)
	}
	return Program{path, Fault(fault)}, nil
}

// Begin lets it go wrong from now on, End ends that.
func (p Program) Begin() error { return os.WriteFile(p.Path+".on", nil, 0o600) }
func (p Program) End() error   { return os.Remove(p.Path + ".on") }

// On says whether it goes wrong.
func (p Program) On() bool {
	_, err := os.Stat(p.Path + ".on")
	return err == nil
}

// Is says whether it goes wrong in this way.
func (p Program) Is(f Fault) bool { return p.Fault == f && p.On() }

// Note records that it goes wrong now.
func (p Program) Note() {
	f, err := os.OpenFile(p.Path+".seen", os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	fmt.Fprintln(f, time.Now().Format(time.RFC3339Nano))
	_ = f.Close()
}

// Seen tells when it went wrong.
func (p Program) Seen() (times []time.Time) {
	text, _ := os.ReadFile(p.Path + ".seen")
	for line := range strings.Lines(string(text)) {
		if at, err := time.Parse(time.RFC3339Nano, strings.TrimSpace(line)); err == nil {
			times = append(times, at)
		}
	}
	return times
}
