// Package languages brings a test the interpreters of plugins that are not written in Go, and the libraries that they need. A machine
// may have none of them. grpc for Python is fetched from Debian's packages and the modules of Node from the npm registry, once, into
// .tools at the top of the repository, without touching the machine. node and npm themselves cannot be had like that: where there are
// none, a root (a CI machine) gets Debian's installed.
//
//	node := languages.Node(t)         // node, and npm
//	python := languages.Python(t)     // python3 that imports grpc and google.protobuf
//	languages.Install(t, dir)         // node_modules of the Node project in dir, from its package-lock.json
//
//	python.Command                    // an absolute path; it works in any environment: plugin = COMMAND, args = ["plugin.py"]
//	python.Path()                     // a PATH in which `#!/usr/bin/env python3` finds it, for a host that starts ./plugin.py
//
// A project to run is rendered by plugins/templates:
//
//	files, err := templates.Render(templates.Options{Name: "tape", Lang: templates.Node})
//	err = templates.Write(dir, files)
//	languages.Install(t, dir)         // does nothing for a project without a package-lock.json
//
// A test that cannot have its language fails and says why. With HOLDFAST_OFFLINE=1 it is skipped instead, for a machine without a
// network.
package languages
