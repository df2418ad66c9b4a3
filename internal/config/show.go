package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"holdfast/ports"
)

// Setting is one value in effect as `config show` prints it.
type Setting struct {
	Name   string `json:"name"`
	Value  string `json:"value"`  // stars for a secret
	Source string `json:"source"` // "default", "FILE:LINE", "env NAME" or "flag --NAME"
}

// Settings gives every value that the host itself knows: its settings, its tokens and who may join its mesh.
func (c *Config) Settings() []Setting {
	var all []Setting
	for _, s := range settings {
		all = append(all, Setting{s.name, s.get(c), c.places[s.name].source})
	}
	for _, t := range c.Tokens {
		source := c.places["token."+t.Name].source
		all = append(all,
			Setting{"token." + t.Name + ".role", t.Role, source},
			Setting{"token." + t.Name + ".secret", t.Secret.String(), source})
	}
	for _, s := range []struct {
		name   string
		secret Secret
	}{{"mesh.join_secret", c.Mesh.JoinSecret}, {"mesh.join_password", c.Mesh.JoinPassword}, {"mesh.join_with", c.Mesh.JoinWith}} {
		if s.secret != "" {
			all = append(all, Setting{s.name, s.secret.String(), c.places[s.name].source})
		}
	}
	for _, u := range c.Mesh.Users {
		all = append(all, Setting{"mesh.user." + u.Name + ".password", u.Password.String(), c.places["mesh.user."+u.Name].source})
	}
	return all
}

// BackendSettings gives the values of a backend block. Without the plugin's table (nil) the options that were given are
// shown as stars, since any of them may be a secret.
func (c *Config) BackendSettings(b *Backend, table []ports.Option) []Setting {
	source := fromDefault
	if b.own {
		source = placeIn(b.where).source
	}
	all := []Setting{
		{b.setting("kind"), b.Kind, source},
		{b.setting("local"), strconv.FormatBool(b.Local), source},
	}
	for _, own := range []struct{ name, value string }{
		{attrPlugin, b.Plugin}, {attrArgs, strings.Join(b.Args, " ")}, {attrMemory, formatMemory(b.Memory)},
		{attrRetention, formatRetention(b.Retention)},
	} {
		if own.name == attrRetention && b.Local { // it has that of the host
			continue
		}
		all = append(all, Setting{b.setting(own.name), own.value, c.places[b.setting(own.name)].source})
	}
	if table == nil {
		attributes, _ := b.body.JustAttributes()
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			all = append(all, Setting{b.setting(name), hidden, placeIn(attributes[name].Range).source})
		}
		return all
	}
	chosen, _ := c.options(b, table)
	for _, o := range chosen {
		if o.Secret {
			o.text = hidden
		}
		all = append(all, Setting{b.setting(o.Name), o.text, o.source})
	}
	return all
}
