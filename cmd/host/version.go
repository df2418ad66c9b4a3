package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when the Makefile links the binary; another build says what Go knows of the module.
var version string

type versionCommand struct{}

func (versionCommand) Run(in *invocation) error {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "" {
		v = info.Main.Version
	}
	_, err := fmt.Fprintf(in.stdout, "holdfast %s %s %s/%s\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
