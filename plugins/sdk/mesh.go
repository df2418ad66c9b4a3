package sdk

import (
	"holdfast/adapters/wire"
	"holdfast/ports"
)

// Mesh gives a backend that lives behind a beacon the beacons that its host knows; Configure is given what it takes. It fails
// with Unavailable when the host has no mesh.
func Mesh(c ports.Configuration) (ports.Mesh, error) { return wire.DialMesh(c.Mesh) }
