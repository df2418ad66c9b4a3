//go:build unix

package process

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"holdfast/ports"
)

// The many ways in which a file is no plugin, each told for what it is, before the start where that is possible.

func unusable(path, format string, args ...any) error {
	e := ports.InField(ports.Invalid, "plugin", format, args...)
	e.Message = path + " " + e.Message
	return e
}

// findExecutable gives the path of a file that can be tried.
func findExecutable(path string) (string, error) {
	if path == "" {
		return "", ports.InField(ports.Invalid, "plugin", "no path is given")
	}
	if !strings.Contains(path, "/") {
		found, err := exec.LookPath(path)
		if err != nil {
			return "", unusable(path, "is not found in PATH (%s)", os.Getenv("PATH"))
		}
		return found, nil
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Lstat(path); err == nil {
			return "", unusable(path, "is a link to a file that does not exist; install the plugin there, or name its place with `plugin = \"PATH\"`")
		}
		return "", unusable(path, "does not exist; install the plugin there, or name its place with `plugin = \"PATH\"`")
	case errors.Is(err, fs.ErrPermission):
		return "", unusable(path, "cannot be reached: permission denied; this user needs the x permission on every folder above it")
	case err != nil:
		return "", unusable(path, "cannot be looked at: %v", err)
	case info.IsDir():
		return "", unusable(path, "is a folder; name the executable in it")
	case !info.Mode().IsRegular():
		return "", unusable(path, "is no ordinary file; name an executable")
	case info.Size() == 0:
		return "", unusable(path, "is an empty file; install the plugin anew")
	case info.Mode()&0o111 == 0:
		return "", unusable(path, "is not executable; try: chmod +x %s", path)
	}
	return path, nil
}

// isFile says whether an argument is a file, which is the plugin itself where an interpreter runs it.
func isFile(arg string) bool {
	info, err := os.Stat(arg)
	return err == nil && info.Mode().IsRegular()
}

// explainStart says why the system did not start a file.
func explainStart(path string, err error) error {
	if known, told := errors.AsType[*ports.Error](err); told {
		return known
	}
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return explainFormat(path)
	case errors.Is(err, fs.ErrNotExist):
		return unusable(path, "cannot be started because %s", missingFor(path))
	case errors.Is(err, fs.ErrPermission):
		return unusable(path, "may not be started: permission denied; this user needs the x permission on it, and its file system must not be mounted noexec")
	case errors.Is(err, syscall.ETXTBSY):
		return ports.Errorf(ports.Unavailable, "", "%s is being written; replace a plugin by renaming a complete file over it", path)
	}
	return ports.Errorf(ports.Unavailable, "", "%s cannot be started: %v", path, err)
}

// machines are GOARCH's names of what ELF files are built for.
var machines = map[elf.Machine]string{
	elf.EM_X86_64: "amd64", elf.EM_386: "386", elf.EM_AARCH64: "arm64", elf.EM_ARM: "arm", elf.EM_RISCV: "riscv64",
	elf.EM_PPC64: "ppc64", elf.EM_S390: "s390x", elf.EM_LOONGARCH: "loong64",
}

func explainFormat(path string) error {
	if f, err := elf.Open(path); err == nil {
		machine := f.Machine
		_ = f.Close()
		built, known := machines[machine]
		if !known {
			built = machine.String()
		}
		return unusable(path, "is built for %s, this machine is %s; install the plugin for %s/%s", built, runtime.GOARCH, runtime.GOOS, runtime.GOARCH)
	}
	head := headOf(path)
	switch {
	case bytes.HasPrefix(head, []byte("MZ")):
		return unusable(path, "is a program for Windows, this machine is %s/%s", runtime.GOOS, runtime.GOARCH)
	case len(head) >= 4 && (bytes.Equal(head[1:4], []byte("\xfa\xed\xfe")) || bytes.HasPrefix(head, []byte("\xca\xfe\xba\xbe"))):
		return unusable(path, "is a program for macOS, this machine is %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	return unusable(path, "is no program; a script needs a first line such as \"#!/usr/bin/env node\"")
}

// carriageReturn is what no look at the script shows, and what the system takes for the end of a program's name.
const carriageReturn = "its first line ends with a carriage return; save it with LF line ends"

// missingFor says what a file that exists needs and does not find: the program of its first line, or its loader.
func missingFor(path string) string {
	line := firstLine(path)
	switch fields := strings.Fields(line); {
	case strings.HasSuffix(line, "\r"):
		return carriageReturn
	case len(fields) > 0:
		return "its interpreter " + shown(fields[0]) + " does not exist; install it, or correct the script's first line"
	}
	return "the loader that it was linked for does not exist; install the plugin that was built for this system, or one that is linked statically"
}

// firstLine gives what stands behind "#!" in a script; "" for any other file.
func firstLine(path string) string {
	first, _, _ := strings.Cut(string(headOf(path)), "\n")
	line, script := strings.CutPrefix(first, "#!")
	if !script {
		return ""
	}
	return line
}

func headOf(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head)
	return head[:n]
}
