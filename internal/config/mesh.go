package config

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/hashicorp/hcl/v2"
)

// Mesh is the hub that beacons connect to, and the hub of somebody else that this host joins as a beacon.
type Mesh struct {
	Name       string
	JoinSecret Secret // lets a beacon's socket in without a login; "" for none
	Users      []User // who may log in

	Join         string // the address of the other hub; "" for none
	JoinCA       string // a PEM file of authorities to trust there beside the system's; "" for none
	As           string // this host's name there; "" leaves it to the host
	JoinUser     string // who logs in there; "" for nobody
	JoinPassword Secret
	JoinWith     Secret // the join secret of that hub; "" for none
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
	Attributes: []hcl.AttributeSchema{{Name: "join_secret"}, {Name: "join_password"}, {Name: "join_with"}},
	Blocks:     []hcl.BlockHeaderSchema{{Type: "user", LabelNames: []string{"name"}}},
}

// takeMesh reads what is secret in the block; rest is what its settings leave of it, nil without a block.
func (c *Config) takeMesh(rest hcl.Body) (diags hcl.Diagnostics) {
	if rest == nil {
		return nil
	}
	content, diags := rest.Content(meshSchema)
	for _, secret := range []struct {
		name, empty string
		into        *Secret
	}{
		{"join_secret", "Every beacon would have it; leave join_secret out to have none.", &c.Mesh.JoinSecret},
		{"join_password", "Leave join_password out to log in nowhere.", &c.Mesh.JoinPassword},
		{"join_with", "Leave join_with out when the hub to join asks for no secret.", &c.Mesh.JoinWith},
	} {
		attribute := content.Attributes[secret.name]
		if attribute == nil {
			continue
		}
		text, found, secretDiags := c.text(formText, attribute)
		diags = append(diags, secretDiags...)
		if found && text == "" {
			diags = append(diags, problem(attribute.Expr.Range().Ptr(), "empty secret", "%s", secret.empty)...)
		}
		if secret.name != "join_secret" && c.Mesh.Join == "" {
			diags = append(diags, problem(&attribute.NameRange, "no hub to join", "%s is for the hub that `join` names; add join, such as join = \"http://ultravisor:54321\".", secret.name)...)
		}
		*secret.into = Secret(text)
		c.places["mesh."+secret.name] = placeIn(attribute.Expr.Range())
	}
	if attribute := content.Attributes["join_password"]; attribute != nil && c.Mesh.Join != "" && c.Mesh.JoinUser == "" {
		diags = append(diags, problem(&attribute.NameRange, "password of nobody", "Add join_user, the user whose password it is.")...)
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

func setJoin(c *Config, text string) error {
	if c.Mesh.Join = ""; text == "" {
		return nil
	}
	c.Mesh.Join = "unusable" // it was given, which is what the rest of the block is held against
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return errors.New("it is no address of a hub; write it like http://ultravisor:54321")
	case u.User != nil:
		return errors.New("it has a user in it; write join_user and join_password instead")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "":
		return errors.New("it has a path behind the port, and a hub has none; write it like http://ultravisor:54321")
	}
	c.Mesh.Join = u.Scheme + "://" + u.Host
	return nil
}

func setAs(c *Config, text string) error {
	if text != "" && !nameForm.MatchString(text) {
		return fmt.Errorf(`%q is not a name; names are of letters, digits, "-", "_" and ".", at most 64`, text)
	}
	c.Mesh.As = text
	return nil
}

func setJoinUser(c *Config, text string) error {
	c.Mesh.JoinUser = text
	return nil
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
