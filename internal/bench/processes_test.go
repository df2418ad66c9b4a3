package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// family is the processes of one host.
type family struct{ host, plugin int }

// familyOf finds the host that this process started last, and its plugin.
func familyOf(b *testing.B) family {
	b.Helper()
	host := childOf(os.Getpid(), "holdfast")
	plugin := childOf(host, "holdfast-backend-sqlite")
	if host == 0 || plugin == 0 {
		b.Fatalf("the processes were not found: host %d, plugin %d", host, plugin)
	}
	return family{host, plugin}
}

func childOf(parent int, name string) (newest int) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || filepath.Base(exe) != name {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if memoryOf(pid, "PPid") == parent {
			newest = max(newest, pid)
		}
	}
	return newest
}

// memoryOf reads a number of /proc/PID/status; sizes are in KiB.
func memoryOf(pid int, name string) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.Atoi(strings.Fields(rest)[0])
			return n
		}
	}
	return 0
}

// processorTime is the processor time that a process has used, in ticks of 10 ms.
func processorTime(pid int) time.Duration {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, behind, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(behind)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// busy is the processor time of both.
func (f family) busy() [2]time.Duration {
	return [2]time.Duration{processorTime(f.host), processorTime(f.plugin)}
}

// cost reports the processor time that a write took since: unlike a rate it hardly changes with what else the machine does.
func (f family) cost(name string, since [2]time.Duration, writes int) {
	now := f.busy()
	for i, who := range []string{"host", "plugin"} {
		table.add(partCost, name+", "+who, "us/write", (now[i]-since[i]).Seconds()*1e6/float64(writes))
	}
}

// note reports resident memory and its peak since the last note.
func (f family) note(during string) {
	for _, p := range []struct {
		name  string
		pid   int
		limit float64
	}{{"host", f.host, 150}, {"plugin", f.plugin, 200}} {
		table.add(partMemory, p.name+" memory at its peak, "+during, "MiB", float64(memoryOf(p.pid, "VmHWM"))/1024).target(target{What: "value", Most: p.limit})
		table.add(partMemory, p.name+" memory afterwards, "+during, "MiB", float64(memoryOf(p.pid, "VmRSS"))/1024)
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.pid), []byte("5"), 0) // begins a new peak, where that is allowed
	}
}
