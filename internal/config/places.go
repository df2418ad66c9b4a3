package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"holdfast/ports"
)

// CheckPlaces finds blocks of one kind that keep their history in one place: the second would only overwrite the first, and
// no row of it would be a copy. tables has the option table of each backend whose plugin could be asked. What the host
// cannot see here, such as two paths to one file, shows when both stores say the same StoreID.
func (c *Config) CheckPlaces(tables map[*Backend][]ports.Option) (diags hcl.Diagnostics) {
	first := map[string]*Backend{}
	for _, b := range c.Backends {
		table, asked := tables[b]
		if !asked {
			continue
		}
		chosen, mistakes := c.options(b, table)
		if mistakes.HasErrors() {
			continue
		}
		where := whereabouts(b.Kind, chosen)
		other, taken := first[where]
		if !taken {
			first[where] = b
			continue
		}
		diags = append(diags, problem(&b.where, "two backends in one place",
			"The backend %q at %s is of the same kind and keeps its history in the same place. %s", other.Name, at(other.where), apart(b, table))...)
	}
	return diags
}

// whereabouts is what tells the place of one backend from another's. Durations and sizes say how a backend works, not where.
func whereabouts(kind string, chosen []option) string {
	parts := []string{kind}
	for _, o := range chosen {
		if tellsPlace(o.Option) {
			parts = append(parts, fmt.Sprintf("%s=%q", o.Name, o.text))
		}
	}
	return strings.Join(parts, " ")
}

func tellsPlace(o ports.Option) bool {
	return o.Type != ports.OptionDuration && o.Type != ports.OptionSize
}

// apart says what helps against two backends in one place.
func apart(b *Backend, table []ports.Option) string {
	i := slices.IndexFunc(table, func(o ports.Option) bool { return tellsPlace(o) && o.Type == ports.OptionString })
	if i < 0 {
		return fmt.Sprintf("A %q backend has no option that tells two of them apart; take one of the blocks out.", b.Kind)
	}
	return fmt.Sprintf("Give %q another %s, or take one of the blocks out.", b.Name, table[i].Name)
}
