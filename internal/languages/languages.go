package languages

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"holdfast/internal/debian"
)

// Tool is an interpreter.
type Tool struct {
	Command string // its absolute path
}

// Path is the PATH of this process with the tool before everything else.
func (t Tool) Path() string {
	return filepath.Dir(t.Command) + string(os.PathListSeparator) + os.Getenv("PATH")
}

var (
	node   = sync.OnceValues(func() (Tool, error) { return debian.Fetch(findNode) })
	python = sync.OnceValues(func() (Tool, error) { return debian.Fetch(findPython) })
)

// Node gives a test the interpreter of JavaScript.
func Node(t testing.TB) Tool {
	t.Helper()
	tool, err := node()
	return had(t, tool, "node", err)
}

// Python gives a test an interpreter of Python that has grpc and protobuf.
func Python(t testing.TB) Tool {
	t.Helper()
	tool, err := python()
	return had(t, tool, "python3 with grpc", err)
}

func had(t testing.TB, tool Tool, what string, err error) Tool {
	t.Helper()
	debian.Need(t, what, err)
	return tool
}

// libraries is the line of a wrapper that lets a program find the libraries that were unpacked with it.
func libraries(root string) string {
	dir := debian.Libraries(root)
	if dir == "" {
		return ""
	}
	return "export LD_LIBRARY_PATH='" + dir + "'\n"
}

// wrap writes a program that starts another one with what it needs.
func wrap(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755)
}
