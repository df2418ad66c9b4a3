package conformance

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/ports"
)

// What a backend says of itself. Everything else is judged by it, so nobody can opt out of this topic.

const describeTopic = "describe"

var describeCases = []Case{
	{
		Topic: describeTopic, Name: "names", Run: describesItself,
		Must: "Describe gives a kind of a-z, 0-9, - and _, a version, one sentence for people, and the same every time",
	},
	{
		Topic: describeTopic, Name: "families", Run: describesFamilies,
		Must: "Describe names the families that it keeps, each once",
	},
	{
		Topic: describeTopic, Name: "powers", Run: describesPowers,
		Must: "Describe names only powers that exist, each once, with what they build on: a reader its family, a LocalStore all four readers",
	},
	{
		Topic: describeTopic, Name: "options", Run: describesOptions,
		Must: "every option has a name of its own, a known type and a help text; its default and example are values of the type; a required option has no default, and a secret one has no default and no example",
	},
	{
		Topic: describeTopic, Name: "opt-outs", Run: describesOptOuts,
		Must: "every opt-out names a topic of the suite or one of its cases, once, and gives a reason",
	},
}

func describesItself(c *C) {
	d, err := c.Backend().Describe(c.Ctx)
	if err != nil {
		c.Fatalf("describe: %s", faultText(err))
	}
	if !regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`).MatchString(d.Kind) {
		c.Errorf("the kind is %q", d.Kind)
	}
	if d.Version == "" || d.Summary == "" {
		c.Errorf("the version is %q, the summary %q; people need both", d.Version, d.Summary)
	}
	if d.Slots < 0 {
		c.Errorf("it takes %d calls at a time", d.Slots)
	}
	again, err := c.Backend().Describe(c.Ctx)
	if err != nil || !reflect.DeepEqual(d, again) {
		c.Errorf("asked again it says something else: %s (%s)", text(again), faultText(err))
	}
	first := c.Describe() // of another start
	if d.Powers == nil {
		first.Powers = nil
	}
	if !reflect.DeepEqual(d, first) {
		c.Errorf("at another start it said something else: %s", text(first))
	}
}

func describesFamilies(c *C) {
	d := c.Describe()
	if len(d.Families) == 0 {
		c.Errorf("it keeps no family; there are %q", ports.Families)
	}
	for i, f := range d.Families {
		if !slices.Contains(ports.Families, f) {
			c.Errorf("%q is no family; there are %q", f, ports.Families)
		}
		if slices.Contains(d.Families[:i], f) {
			c.Errorf("%s stands twice", f)
		}
	}
}

// powers are all that there are.
var powers = []string{"LocalStore", "ItemReader", "EventReader", "AttemptReader", "ManifestReader", "Pruner", "Exporter", "Drainer", "Surveyor"}

func describesPowers(c *C) {
	d := c.Describe()
	for i, p := range d.Powers {
		if !slices.Contains(powers, p) {
			c.Errorf("%q is no power; there are %q", p, powers)
		}
		if slices.Contains(d.Powers[:i], p) {
			c.Errorf("%s stands twice", p)
		}
	}
	for _, r := range readers {
		switch has := slices.Contains(d.Powers, r.power); {
		case has && !slices.Contains(d.Families, r.kind.Family()):
			c.Errorf("it declares %s and does not keep the family %s", r.power, r.kind.Family())
		case !has && slices.Contains(d.Powers, "LocalStore"):
			c.Errorf("it declares LocalStore, which needs %s too", r.power)
		}
	}
}

func describesOptions(c *C) {
	seen := map[string]bool{}
	for _, o := range c.Describe().Options {
		if !regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`).MatchString(o.Name) || o.Name == "local" || o.Name == "plugin" {
			c.Errorf("%q cannot be an option's name: it is of a-z, 0-9 and _, and neither local nor plugin, which are the host's", o.Name)
		}
		if seen[o.Name] {
			c.Errorf("%s stands twice", o.Name)
		}
		seen[o.Name] = true
		if o.Help == "" {
			c.Errorf("%s has no help", o.Name)
		}
		if o.Secret && (o.Default != "" || o.Example != "") {
			c.Errorf("%s is secret and has a default or an example, which would be shown", o.Name)
		}
		if o.Required && o.Default != "" {
			c.Errorf("%s is required and has a default", o.Name)
		}
		for what, value := range map[string]string{"default": o.Default, "example": o.Example} {
			if err := valueOf(o.Type, value); value != "" && err != nil {
				c.Errorf("%s: the %s %q %v", o.Name, what, value, err)
			}
		}
		if err := valueOf(o.Type, ""); !slices.Contains(optionTypes, o.Type) {
			c.Errorf("%s: %v", o.Name, err)
		}
	}
}

var optionTypes = []ports.OptionType{ports.OptionString, ports.OptionInt, ports.OptionBool, ports.OptionDuration, ports.OptionSize}

var sizeForm = regexp.MustCompile(`^[0-9]+ ?(B|KiB|MiB|GiB|TiB)?$`)

// valueOf says what is wrong with a value as it would be written in the configuration.
func valueOf(t ports.OptionType, value string) (err error) {
	switch t {
	case ports.OptionString:
		return nil
	case ports.OptionInt:
		if _, err = strconv.ParseInt(value, 10, 64); err != nil {
			return fmt.Errorf("is no whole number")
		}
	case ports.OptionBool:
		if value != "true" && value != "false" {
			return fmt.Errorf("is neither true nor false")
		}
	case ports.OptionDuration:
		if _, err = time.ParseDuration(value); err != nil {
			return fmt.Errorf(`is no duration such as "250ms"`)
		}
	case ports.OptionSize:
		if !sizeForm.MatchString(value) {
			return fmt.Errorf(`is no size such as "64MiB"`)
		}
	default:
		return fmt.Errorf("is of the type %q; there are %q", t, optionTypes)
	}
	return nil
}

func describesOptOuts(c *C) {
	d := c.Describe()
	known := map[string]bool{}
	for i := range c.suite {
		known[c.suite[i].Topic], known[c.suite[i].Path()] = true, true
	}
	seen := map[string]bool{}
	for _, o := range d.OptOuts {
		switch {
		case slices.Contains(powers, o.Of):
			c.Errorf("%q is a power; one that is not offered needs no opt-out, it is only not declared", o.Of)
		case o.Of == describeTopic || strings.HasPrefix(o.Of, describeTopic+"/"):
			c.Errorf("nobody can opt out of %q: everything else is judged by it", o.Of)
		case !known[o.Of]:
			c.Errorf("%q is neither a topic of the suite nor one of its cases", o.Of)
		}
		if seen[o.Of] {
			c.Errorf("%q stands twice", o.Of)
		}
		seen[o.Of] = true
		if strings.TrimSpace(o.Reason) == "" {
			c.Errorf("the opt-out of %q has no reason", o.Of)
		}
	}
}
