package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"holdfast/ports"
)

const (
	// memoryLook is the time between two looks at what a plugin holds; who is in its group is found out less often, since that
	// takes a look at every process of the machine.
	memoryLook    = 250 * time.Millisecond
	looksForGroup = 4
	// oomShift makes the kernel, when the machine runs out of memory, take a plugin before its host.
	oomShift = 500
)

// mindMemory kills the group once it holds more than its limit, until done. What counts is memory that the kernel cannot take
// back by itself: not the pages of files, but each page that forked children share once for each of them. A process that left
// the group is not counted.
func (p *program) mindMemory(limit int64, done <-chan struct{}) {
	offerToKernel(p.pid)
	looks := time.NewTicker(memoryLook)
	defer looks.Stop()
	members := []int{p.pid}
	for n := 1; ; n++ {
		select {
		case <-done:
			return
		case <-looks.C:
		}
		if n%looksForGroup == 0 {
			members = groupOf(p.pid)
		}
		used := int64(0)
		for _, pid := range members {
			used += heldBy(pid)
		}
		if used > limit {
			p.condemn(ports.Errorf(ports.Full, "", "used %s of memory, the limit is %s, and was killed; raise memory_limit in its block", sizeText(used), sizeText(limit)))
			return
		}
	}
}

// offerToKernel raises the plugin's place in the kernel's list of whom to kill. Lowering it again needs privileges.
func offerToKernel(pid int) {
	const file = "oom_score_adj"
	text, err := os.ReadFile("/proc/self/" + file)
	if err != nil {
		return
	}
	own, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file), []byte(strconv.Itoa(min(own+oomShift, 1000))), 0)
}

// groupOf gives the processes of a group.
func groupOf(group int) []int {
	var members []int
	for _, pid := range processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue
		}
		_, rest, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(") ")) // the name before it may hold anything
		fields := bytes.Fields(rest)                                                         // state, parent, group
		if len(fields) > 2 && string(fields[2]) == strconv.Itoa(group) {
			members = append(members, pid)
		}
	}
	return members
}

// heldBy gives the memory of one process, 0 when it is gone.
func heldBy(pid int) int64 {
	status, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	defer status.Close()
	total := int64(0)
	for lines := bufio.NewScanner(status); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		if name != "RssAnon" && name != "RssShmem" {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err == nil {
			total += kib << 10
		}
	}
	return total
}

// sizeText is a size as people read it.
func sizeText(bytes int64) string {
	switch {
	case bytes < 1<<20:
		return fmt.Sprintf("%d KiB", bytes>>10)
	case bytes < 10<<30:
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}
