package config

import (
	"fmt"
	"regexp"

	"github.com/hashicorp/hcl/v2"
)

// Kinds become part of a file name, names part of routes, metrics and paths of the API.
var (
	kindForm = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$`)
)

// takeBackends reads the blocks, or the default ones when there are none.
func (c *Config) takeBackends(blocks hcl.Blocks) (diags hcl.Diagnostics) {
	own := len(blocks) > 0
	if !own {
		body, _ := c.parse(defaultsName, []byte(defaults))
		standing, _ := c.content(body)
		blocks = standing.backends
	}
	names := map[string]hcl.Range{}
	var local *Backend
	for _, block := range blocks {
		b, blockDiags := c.takeBackend(block)
		diags = append(diags, blockDiags...)
		if b == nil {
			continue
		}
		b.own = own
		if first, twice := names[b.Name]; twice {
			diags = append(diags, problem(&block.LabelRanges[1], "second backend of one name",
				"The backend %q stands at %s already; each has a name of its own.", b.Name, at(first))...)
			continue
		}
		names[b.Name] = block.DefRange
		c.Backends = append(c.Backends, b)
		if b.Local && local != nil {
			diags = append(diags, problem(&block.DefRange, "second local store",
				"The backend %q at %s is the local store already; only one has local = true.", local.Name, at(local.where))...)
		} else if b.Local {
			local = b
		}
	}
	if local == nil && !diags.HasErrors() {
		diags = append(diags, problem(&blocks[0].DefRange, "no local store",
			"One backend must be the local store, which decides what every write does: add local = true to it.")...)
	}
	return diags
}

func (c *Config) takeBackend(block *hcl.Block) (*Backend, hcl.Diagnostics) {
	kind, name := block.Labels[0], block.Labels[1]
	if !kindForm.MatchString(kind) {
		return nil, problem(&block.LabelRanges[0], "wrong kind of backend", `%q is not a kind; kinds are of a-z, 0-9, "-" and "_".`, kind)
	}
	if !nameForm.MatchString(name) {
		return nil, problem(&block.LabelRanges[1], "wrong name of a backend", `%q is not a name; names are of letters, digits, "-", "_" and ".", at most 64.`, name)
	}
	b := &Backend{Kind: kind, Name: name, where: block.DefRange, ranges: map[string]hcl.Range{}}
	return b, c.takeHostAttributes(b, block.Body)
}

// takeTokens reads the token blocks.
func (c *Config) takeTokens(blocks hcl.Blocks) (diags hcl.Diagnostics) {
	names, secrets := map[string]hcl.Range{}, map[Secret]string{}
	for _, block := range blocks {
		t, where, blockDiags := c.takeToken(block)
		diags = append(diags, blockDiags...)
		if blockDiags.HasErrors() {
			continue
		}
		if first, twice := names[t.Name]; twice {
			diags = append(diags, problem(&block.LabelRanges[0], "second token of one name", "The token %q stands at %s already.", t.Name, at(first))...)
			continue
		}
		if other, twice := secrets[t.Secret]; twice {
			diags = append(diags, problem(&where, "secret used twice", "The token %q has the same secret, so nobody could tell them apart.", other)...)
			continue
		}
		names[t.Name], secrets[t.Secret] = block.DefRange, t.Name
		c.Tokens = append(c.Tokens, t)
		c.places["token."+t.Name] = placeIn(block.DefRange)
	}
	return diags
}

func (c *Config) takeToken(block *hcl.Block) (t Token, secret hcl.Range, diags hcl.Diagnostics) {
	t.Name = block.Labels[0]
	if !nameForm.MatchString(t.Name) {
		return t, secret, problem(&block.LabelRanges[0], "wrong name of a token", `%q is not a name; names are of letters, digits, "-", "_" and ".", at most 64.`, t.Name)
	}
	content, diags := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{
		{Name: "role", Required: true}, {Name: "secret", Required: true},
	}})
	texts := map[string]string{}
	for name, attribute := range content.Attributes {
		text, _, textDiags := c.text(formText, attribute)
		diags = append(diags, textDiags...)
		texts[name] = text
	}
	if diags.HasErrors() {
		return t, secret, diags
	}
	secret = content.Attributes["secret"].Expr.Range()
	t.Role, t.Secret = texts["role"], Secret(texts["secret"])
	if err := choice(t.Role, []string{RoleRead, RoleWrite, RoleAdmin}); err != nil {
		diags = append(diags, problem(content.Attributes["role"].Expr.Range().Ptr(), "wrong value of role", "%s", sentence(err))...)
	}
	if t.Secret == "" {
		diags = append(diags, problem(&secret, "empty secret", "A token without a secret would let everybody in.")...)
	}
	return t, secret, diags
}

// checkListen refuses to be reachable from elsewhere without tokens.
func (c *Config) checkListen() hcl.Diagnostics {
	if c.Listen == "" || c.Loopback() || len(c.Tokens) > 0 {
		return nil
	}
	from := c.places["listen"]
	return problem(from.rng, from.from("listen address needs tokens"),
		`Other machines can reach %q, and another address needs tokens: add a token block, or listen on "127.0.0.1:8420".`, c.Listen)
}

// at gives "line N" of a range in the file at hand.
func at(r hcl.Range) string { return fmt.Sprintf("line %d", r.Start.Line) }
