package conformance

const describeTopic = "describe"

var describeCases = []Case{{
	Topic: "describe", Name: "names",
	Must: "Describe gives a kind, a version and at least one family",
	Run: func(c *C) {
		d, err := c.Backend().Describe(c.Ctx)
		if err != nil {
			c.Fatalf("describe: %v", err)
		}
		if d.Kind == "" || d.Version == "" || len(d.Families) == 0 {
			c.Errorf("it is of kind %q, version %q, and keeps %v", d.Kind, d.Version, d.Families)
		}
	},
}}
