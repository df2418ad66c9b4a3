package config

import _ "embed"

// Example is the whole configuration with its defaults, explained. The file is also linked at the root of the project.
//
//go:embed holdfast.example.hcl
var Example string
