package main

import "holdfast/plugins/proto"

// pluginProto is `holdfast plugin proto`.
type pluginProto struct{}

func (pluginProto) Help() string {
	return "Prints the protocol as its authors read it, with the rules in the comments; docs/plugin-protocol.md has the rest of them."
}

func (pluginProto) Run(in *invocation) error {
	_, err := in.stdout.Write(proto.Source)
	return err
}
