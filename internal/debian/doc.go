// Package debian brings tests the programs that a machine may not have, from Debian's packages: fetched once into .tools at the top
// of the repository and run from there, without touching the machine and without any rights.
//
//	found, err := debian.Fetch(func(ctx context.Context, tools string) (string, error) { // one at a time, whichever processes want one
//		return debian.Unpack(ctx, filepath.Join(tools, "debian-pgbouncer"), "pgbouncer")
//	})
//	debian.Need(t, "pgbouncer", err) // fails the test and says why, or skips it with HOLDFAST_OFFLINE=1
package debian
