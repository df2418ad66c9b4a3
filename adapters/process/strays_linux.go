package process

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/hashicorp/go-plugin"
	"golang.org/x/sys/unix"
)

// strayRounds is how often strays are looked for: one that forks while it is looked for leaves another.
const strayRounds = 5

// maxCommand is how much of a stray's command line is told.
const maxCommand = 200

// KillStrays kills what plugins left outside of their process groups: every process of this user whose environment still
// names a folder for sockets that is, or is in, the given one. What cleared its environment too is not found. It gives the
// command lines.
func KillStrays(folder string) (killed []string) {
	if folder == "" {
		return nil
	}
	found := map[int]bool{} // one that is killed may still be seen
	for range strayRounds {
		before := len(killed)
		for _, pid := range processes() {
			if found[pid] || pid == os.Getpid() {
				continue
			}
			if command, is := killStray(pid, folder); is {
				found[pid], killed = true, append(killed, command)
			}
		}
		if len(killed) == before {
			break
		}
	}
	return killed
}

// killStray holds on to the process before it looks at it, since the number of one that ends may go to another.
func killStray(pid int, folder string) (command string, killed bool) {
	handle, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return "", false
	}
	defer unix.Close(handle)
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return "", false
	}
	_, after, named := bytes.Cut(environ, []byte(plugin.EnvUnixSocketDir+"="+folder))
	if !named || (len(after) > 0 && after[0] != 0 && after[0] != '/') {
		return "", false
	}
	words, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	words = bytes.ReplaceAll(bytes.Trim(words, "\x00"), []byte{0}, []byte{' '})
	return shown(string(words[:min(len(words), maxCommand)])), unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) == nil
}

// processes gives every process of the machine.
func processes() []int {
	folder, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	var all []int
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			all = append(all, pid)
		}
	}
	return all
}
