package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set when the binary is linked (see Makefile).
var version = "dev"

type versionCommand struct{}

func (versionCommand) Run(in *invocation) error {
	_, err := fmt.Fprintf(in.stdout, "holdfast %s%s %s %s/%s\n", version, revision(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// revision is the commit that Go stamped into the binary, with a blank before it; nothing when there is none.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed"
		}
	}
	if commit == "" {
		return ""
	}
	return " (" + commit + changed + ")"
}
