package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// processes lists the live processes whose executable lies below a directory, by name of the executable.
func processes(dir string) map[string][]int {
	found := map[string][]int{}
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		exe, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(exe, dir+string(filepath.Separator)) {
			continue // a process that ended or is not ours
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err != nil || strings.Contains(string(stat), ") Z ") {
			continue
		}
		name := filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
		found[name] = append(found[name], pid)
	}
	return found
}

// plugins lists the host's live plugin processes.
func (h *Host) plugins() []int {
	var pids []int
	for name, list := range processes(h.bin) {
		if strings.HasPrefix(name, "holdfast-backend-") {
			pids = append(pids, list...)
		}
	}
	return pids
}

// Plugins counts the host's live plugin processes.
func (h *Host) Plugins() int { return len(h.plugins()) }

// KillPlugins kills every plugin of the host with SIGKILL and says how many there were.
func (h *Host) KillPlugins() int { return h.signalPlugins(syscall.SIGKILL) }

// HangPlugins stops every plugin of the host where it is, with SIGSTOP.
func (h *Host) HangPlugins() int {
	h.hung = true
	return h.signalPlugins(syscall.SIGSTOP)
}

func (h *Host) signalPlugins(signal syscall.Signal) int {
	pids := h.plugins()
	for _, pid := range pids {
		_ = syscall.Kill(pid, signal)
	}
	return len(pids)
}

// sockets lists the sockets that lie below the host's directories.
func (h *Host) sockets() []string {
	var left []string
	_ = filepath.WalkDir(h.dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type()&fs.ModeSocket != 0 {
			left = append(left, path)
		}
		return nil
	})
	return left
}
