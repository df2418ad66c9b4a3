package config

import (
	"github.com/hashicorp/hcl/v2"
)

// Mesh is the hub that beacons connect to.
type Mesh struct {
	Name       string
	JoinSecret Secret // lets a beacon's socket in without a login; "" for none
	Users      []User // who may log in
}

// User is somebody who may log in to the hub.
type User struct {
	Name     string
	Password Secret // as it is, or as a hash of it
}

// Secured says whether the hub asks who comes.
func (m *Mesh) Secured() bool { return m.JoinSecret != "" || len(m.Users) > 0 }

// MeshOpen says whether beacons are let in: everybody of this machine is, others only where the hub asks who they are.
func (c *Config) MeshOpen() bool { return c.Loopback() || c.Mesh.Secured() }

// meshSchema is what the block has beside its settings.
var meshSchema = &hcl.BodySchema{
	Attributes: []hcl.AttributeSchema{{Name: "join_secret"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "user", LabelNames: []string{"name"}}},
}

// takeMesh reads what is secret in the block; rest is what its settings leave of it, nil without a block.
func (c *Config) takeMesh(rest hcl.Body) (diags hcl.Diagnostics) {
	if rest == nil {
		return nil
	}
	content, diags := rest.Content(meshSchema)
	if attribute := content.Attributes["join_secret"]; attribute != nil {
		text, found, secretDiags := c.text(formText, attribute)
		diags = append(diags, secretDiags...)
		if found && text == "" {
			diags = append(diags, problem(attribute.Expr.Range().Ptr(), "empty secret", "Every beacon would have it; leave join_secret out to have none.")...)
		}
		c.Mesh.JoinSecret = Secret(text)
		c.places["mesh.join_secret"] = placeIn(attribute.Expr.Range())
	}
	names := map[string]hcl.Range{}
	for _, block := range content.Blocks {
		u, blockDiags := c.takeUser(block)
		diags = append(diags, blockDiags...)
		if first, twice := names[u.Name]; twice {
			diags = append(diags, problem(&block.LabelRanges[0], "second user of one name", "The user %q stands at %s already.", u.Name, at(first))...)
		}
		if diags.HasErrors() {
			continue
		}
		names[u.Name] = block.DefRange
		c.Mesh.Users = append(c.Mesh.Users, u)
		c.places["mesh.user."+u.Name] = placeIn(block.DefRange)
	}
	return diags
}

func (c *Config) takeUser(block *hcl.Block) (u User, diags hcl.Diagnostics) {
	u.Name = block.Labels[0]
	if u.Name == "" {
		diags = append(diags, problem(&block.LabelRanges[0], "wrong name of a user", "A user has a name.")...)
	}
	content, more := block.Body.Content(&hcl.BodySchema{Attributes: []hcl.AttributeSchema{{Name: "password", Required: true}}})
	diags = append(diags, more...)
	attribute := content.Attributes["password"]
	if attribute == nil {
		return u, diags
	}
	text, found, more := c.text(formText, attribute)
	diags = append(diags, more...)
	if found && text == "" {
		diags = append(diags, problem(attribute.Expr.Range().Ptr(), "empty password", "A user without a password would let everybody in.")...)
	}
	u.Password = Secret(text)
	return u, diags
}
