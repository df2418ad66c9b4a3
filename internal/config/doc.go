// Package config reads what the operator wants: an HCL file (or its JSON form), environment variables and flags.
//
//	default  <  file  <  environment HOLDFAST_*  <  flag
//
// Every effective value knows which of the four it came from. Everything has a default, so that no file at all is a
// configuration too: the SQLite plugin as local store, in ./data, on a loopback address.
//
//	cfg, diags := config.Load(config.Input{File: "holdfast.hcl"})
//	if err := cfg.Err(diags); err != nil {
//		return err // its text has file, line, column, a snippet and what to do
//	}
//	for _, b := range cfg.Backends {
//		options, diags := cfg.CheckOptions(b, described.Options) // what ports.Configuration.Options takes
//	}
//
// A new setting is one row in settings.go, one field of Config and one line of holdfast.example.hcl. The options of a backend are
// not known here: its plugin declares them as data (ports.Option), and options.go checks against that.
//
// Secrets never show: values of type Secret print as stars, and snippets in diagnostics hide every value that is not known
// to be harmless (mask.go).
//
// Relative paths, those of `data`, `plugin_dir`, `plugin`, `args` and file(), are relative to the working directory.
package config
