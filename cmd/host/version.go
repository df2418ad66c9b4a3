package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
)

// linked is set when the Makefile links the binary.
var linked string

// version is what was linked; another build says what Go knows of the module.
var version = sync.OnceValue(func() string {
	if info, ok := debug.ReadBuildInfo(); ok && linked == "" {
		return info.Main.Version
	}
	return linked
})

type versionCommand struct{}

func (versionCommand) Run(in *invocation) error {
	_, err := fmt.Fprintf(in.stdout, "holdfast %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
