package acceptance

import (
	"testing"
	"time"

	"holdfast/internal/hostile"
)

// Hostile plugins beside a healthy local store and a healthy mirror, asked before both: nobody but the status notices them.

// ordeal is a fault, when its evidence is there, and how the status tells it.
type ordeal struct {
	fault hostile.Fault
	shows time.Duration // from the fault to its evidence
	told  string        // in the backend's part of the status; "" for one that harms nobody
	early bool          // wrong from the first start
}

// silence is when a plugin that says nothing at all has left a probe, asked every 2 s, without an answer for a second;
// unready is the time that a launch has.
const (
	silence = 3 * time.Second
	unready = 10 * time.Second
	deaths  = 10 * time.Second // for a key to be found that nobody survives: the third death, and starts ever more slowly
	tellIn  = 2 * time.Second
	busy    = 2 * time.Second // what a busy machine adds
)

func TestFaultyFollowersCostTheOthersNothing(t *testing.T) {
	t.Parallel()
	for name, ordeals := range map[string][]ordeal{
		"that do not start": {
			{hostile.FreezeBefore, unready, `printed no handshake within 10s`, true},
			{hostile.FreezeIn, unready, `printed no handshake within 10s; it printed \\"1\|1\|unix\|/tmp/\\" to stdout instead`, true},
			{hostile.ExitBefore, 0, `exited with code 3 before its handshake.*the tape is torn`, true},
			{hostile.SpeaksTwo, 0, `speaks protocol 1000`, true},
			{hostile.SpeaksOther, 0, `refused Describe`, true},
			{hostile.AnotherKind, 0, `of the kind \\"postgres\\"`, false},
			{hostile.OtherOptions, 0, `needs dsn`, false},
			{hostile.NoPowers, 0, ``, false},
			{hostile.NoFamilies, 0, `"unassigned"`, false},
			{hostile.MutePosition, 2 * time.Second, `has not said for 1s where its store is`, false},
			{hostile.ExitLater, 2 * time.Second, `exited with code 0`, false},
			{hostile.Litter, 0, `ended by signal 9`, false},
		},
		"that go wrong in calls": {
			{hostile.Mute, silence, `"Suspect":true`, false},
			{hostile.DieOnWrite, 0, `a write broke the tape.*exited with code 3`, false},
			{hostile.DieOnRecord, deaths, `"Unsettled":1,`, false},
			{hostile.LateShort, 3 * time.Second, `behind the local store`, false},
			{hostile.LateLong, 5 * time.Second, `had no answer for 5s|in doubt|"InDoubt":[1-9]|behind the local store`, false},
			{hostile.AnswerTwice, 0, `says that \d+ of \d+ rows are in`, false},
			{hostile.WrongDone, 0, `says that \d+ of \d+ rows are in`, false},
			{hostile.WrongBatch, 0, `says that -1 of \d+ rows are in`, false},
			{hostile.WrongDecisions, 0, `stopped after 0 of \d+ rows`, false},
			{hostile.Garbage, 0, `a body that is no JSON object`, false},
			{hostile.WrongKey, 0, `a record of another key`, false},
		},
		"that burden the machine": {
			{hostile.Stopped, silence, `"Suspect":true`, false},
			{hostile.ForkInside, silence, `"Suspect":true`, false},
			{hostile.ForkOutside, silence, `"Suspect":true`, false},
			{hostile.Flood, 0, ``, false},
			{hostile.EatMemory, 2 * time.Second, `used .* of memory, the limit is 300 MiB`, false},
			{hostile.Deaf, 0, ``, false},
			{hostile.HostStreams, 0, ``, false},
			{hostile.CloseStreams, 0, ``, false},
			{hostile.FillDisk, 0, ``, false},
			{hostile.ManyFiles, 0, ``, false},
			{hostile.Unlink, 0, ``, false},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			besiege(t, ordeals)
		})
	}
}
