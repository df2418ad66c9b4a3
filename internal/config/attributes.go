package config

import (
	"fmt"
	"math"

	"github.com/hashicorp/hcl/v2"
)

// What the host itself reads of a backend block; the rest are the plugin's options.
const (
	attrLocal     = "local"
	attrPlugin    = "plugin"
	attrArgs      = "args"
	attrMemory    = "memory_limit"
	attrRetention = "retention"
)

var hostAttributes = []string{attrLocal, attrPlugin, attrArgs, attrMemory, attrRetention}

var backendSchema = func() *hcl.BodySchema {
	schema := &hcl.BodySchema{}
	for _, name := range hostAttributes {
		schema.Attributes = append(schema.Attributes, hcl.AttributeSchema{Name: name})
	}
	return schema
}()

// The bounds of memory_limit. Less than the least would kill a plugin before it did anything.
const (
	DefaultMemory = 2 << 30
	leastMemory   = 64 << 20
	NoMemoryLimit = math.MaxInt64
)

const formArgs = `a list of texts such as ["plugin.js"]`

// takeHostAttributes gives the host's own attributes of a block their values, and leaves the options in b.body.
func (c *Config) takeHostAttributes(b *Backend, body hcl.Body) hcl.Diagnostics {
	b.Plugin, b.Memory = c.pluginPath(b.Kind), DefaultMemory
	for _, name := range hostAttributes {
		c.places[b.setting(name)] = place{source: fromDefault}
	}
	content, rest, diags := body.PartialContent(backendSchema)
	b.body = rest
	take := func(name string, read func(*hcl.Attribute) (found bool, diags hcl.Diagnostics)) {
		attribute := content.Attributes[name]
		if attribute == nil {
			return
		}
		b.ranges[name] = attribute.Range
		found, readDiags := read(attribute)
		if diags = append(diags, readDiags...); found {
			c.places[b.setting(name)] = placeIn(attribute.Expr.Range())
		}
	}
	take(attrLocal, func(a *hcl.Attribute) (bool, hcl.Diagnostics) {
		text, found, diags := c.text(formBool, a)
		if found && text != "true" && text != "false" {
			return false, append(diags, problem(a.Expr.Range().Ptr(), "wrong value of local", "It is true or false.")...)
		}
		b.Local = found && text == "true"
		return found, diags
	})
	take(attrPlugin, func(a *hcl.Attribute) (bool, hcl.Diagnostics) {
		text, found, diags := c.text(formText, a)
		if found && text == "" {
			return false, append(diags, problem(a.Expr.Range().Ptr(), "wrong value of plugin", "It is the path of an executable.")...)
		}
		if found {
			b.Plugin = text
		}
		return found, diags
	})
	take(attrArgs, func(a *hcl.Attribute) (found bool, diags hcl.Diagnostics) {
		b.Args, found, diags = c.texts(a, formArgs)
		return found, diags
	})
	take(attrMemory, func(a *hcl.Attribute) (bool, hcl.Diagnostics) {
		text, found, diags := c.text(formSize, a)
		if !found {
			return false, diags
		}
		limit, err := parseMemory(text)
		if err != nil {
			return false, append(diags, problem(a.Expr.Range().Ptr(), "wrong value of memory_limit", "%s", sentence(err))...)
		}
		b.Memory = limit
		return true, diags
	})
	take(attrRetention, func(a *hcl.Attribute) (bool, hcl.Diagnostics) {
		text, found, diags := c.text(formText, a)
		if !found {
			return false, diags
		}
		keep, err := parseRetention(text)
		if err != nil {
			return false, append(diags, problem(a.Expr.Range().Ptr(), "wrong value of retention", "%s", sentence(err))...)
		}
		b.Retention = keep
		return true, diags
	})
	if own := content.Attributes[attrRetention]; own != nil && b.Local {
		diags = append(diags, problem(own.Range.Ptr(), "retention of the local store",
			"What the local store keeps is said by the setting retention, which stands outside of the backend blocks; take it there.")...)
	}
	return diags
}

func parseMemory(text string) (int64, error) {
	if text == off {
		return NoMemoryLimit, nil
	}
	limit, err := ParseSize(text)
	if err == nil && limit < leastMemory {
		err = fmt.Errorf(`%q is too little for any plugin; give it %s at least, or write "off" for no limit`, text, FormatSize(leastMemory))
	}
	return limit, err
}

func formatMemory(bytes int64) string {
	if bytes == NoMemoryLimit {
		return off
	}
	return FormatSize(bytes)
}

// setting names an attribute of the backend as `config show` does.
func (b *Backend) setting(attribute string) string { return "backend." + b.Name + "." + attribute }

// Line is where the block stands: "FILE:LINE", "" for the default one.
func (b *Backend) Line() string {
	if !b.own {
		return ""
	}
	return placeIn(b.where).source
}

// Place is where an attribute of the block stands: "FILE:LINE", or that of the block where it is not given. "" for the default
// block.
func (b *Backend) Place(attribute string) string {
	attributes, _ := b.body.JustAttributes()
	if a := attributes[attribute]; a != nil && b.own {
		return placeIn(a.Range).source
	}
	return b.Line()
}
