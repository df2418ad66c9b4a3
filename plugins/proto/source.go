// Package proto holds the contract of plugins as its authors read it. The Go code that is generated from it is in backendv1.
package proto

import _ "embed"

// Source is the text of backend.proto, with the rules of the contract in its comments.
//
//go:embed holdfast/backend/v1/backend.proto
var Source []byte
