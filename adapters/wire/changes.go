package wire

import (
	"context"

	"holdfast/ports"
)

// Changes tells what changed after a position; see ports.LocalStore.
func (c *Client) Changes(ctx context.Context, q ports.ChangesQuery) (ports.ChangePage, error) {
	return ports.ChangePage{}, ports.Errorf(ports.Unimplemented, "", "not there yet")
}
