package sqlite

import (
	"context"

	"holdfast/ports"
)

// Changes tells what changed after a position; see ports.LocalStore.
func (s *Store) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return ports.ChangePage{}, ports.Errorf(ports.Unimplemented, "sqlite: changes", "not there yet")
}
