package config

import "github.com/hashicorp/hcl/v2"

// CheckServed finds the backends that a host would leave alone: its history is in the local store, and nothing is copied to
// another backend.
func (c *Config) CheckServed() (diags hcl.Diagnostics) {
	for _, b := range c.Backends {
		if !b.Local {
			diags = append(diags, problem(&b.where, "backend without a use",
				"Only the local store keeps history; nothing would reach the backend %q. Take the block out.", b.Name)...)
		}
	}
	return diags
}
