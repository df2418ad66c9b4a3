package core

import (
	"context"

	"holdfast/ports"
)

// Changes tells what changed; see ports.LocalStore.
func (m *memory) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return ports.ChangePage{}, ports.Errorf(ports.Unimplemented, "memory", "not there yet")
}
