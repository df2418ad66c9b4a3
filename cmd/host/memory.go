package main

import (
	"os"
	"strconv"
	"strings"
)

// machineMemory is what the machine has, where the system tells it in /proc.
func machineMemory() (bytes int64, known bool) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) == 3 && words[0] == "MemTotal:" && words[2] == "kB" {
			n, err := strconv.ParseInt(words[1], 10, 64)
			return n << 10, err == nil
		}
	}
	return 0, false
}
