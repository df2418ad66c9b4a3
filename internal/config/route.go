package config

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
)

// The route is the order in which backends are asked for a read. Without one in the configuration, history is read where
// its other readers have it, and else from the local store; a mirror that nobody else reads is a copy, not a source.

// preferred are the names that lead the default route, where backends of these names are configured.
var preferred = []string{"databeacon", "beacon"}

// defaultRoute sets the route that nobody gave, now that the backends are known.
func (c *Config) defaultRoute() {
	if c.places["route"].source != fromDefault {
		return
	}
	c.Route = nil
	for _, name := range preferred {
		if b := c.routed(name); b != nil && !b.Local {
			c.Route = append(c.Route, name)
		}
	}
	c.Route = append(c.Route, localInRoute)
}

// Routed gives the backends of the route, most preferred first. In a route "local" always means the local store.
func (c *Config) Routed() []*Backend {
	var routed []*Backend
	for _, name := range c.Route {
		if b := c.routed(name); b != nil {
			routed = append(routed, b)
		}
	}
	return routed
}

const localInRoute = "local"

func (c *Config) routed(name string) *Backend {
	if name == localInRoute {
		return c.LocalBackend()
	}
	i := slices.IndexFunc(c.Backends, func(b *Backend) bool { return b.Name == name })
	if i < 0 {
		return nil
	}
	return c.Backends[i]
}

// checkRoute holds the names of the route against the backends.
func (c *Config) checkRoute() (diags hcl.Diagnostics) {
	from := c.places["route"]
	known := []string{localInRoute}
	for _, b := range c.Backends {
		if b.Name != localInRoute {
			known = append(known, b.Name)
		}
	}
	seen := map[*Backend]bool{}
	for _, name := range c.Route {
		b := c.routed(name)
		switch {
		case b == nil && name != localInRoute:
			diags = append(diags, problem(from.rng, from.from("unknown backend in route"), "No backend is called %q. %s", name, hint(name, known))...)
		case b != nil && seen[b]:
			diags = append(diags, problem(from.rng, from.from("backend twice in route"), "%q is in it already; each backend is asked once.", name)...)
		}
		seen[b] = true
	}
	return diags
}
