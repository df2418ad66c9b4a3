package conformance

import (
	"slices"
	"strings"

	"holdfast/ports"
)

// Why a case is left out: what it needs is not offered, the backend opted out of it, or nothing here can try it.

func exempt(s *Subject, d *ports.Description, c *Case) (Outcome, string) {
	if what := missing(d, c); len(what) > 0 {
		return NotOffered, lacks(what[0])
	}
	if o := optOut(d, c); o != nil {
		return OptedOut, o.Reason
	}
	if c.Kills && s.Kill == nil {
		return Untried, "nothing here can kill it"
	}
	return "", ""
}

// anyReader and anyList stand among the missing for a reader or list of any kind.
const (
	anyReader = "readers"
	anyList   = "lists"
)

// missing names the families that a case needs and the backend does not keep, or else the powers.
func missing(d *ports.Description, c *Case) (what []string) {
	for _, f := range c.Of {
		if !slices.Contains(d.Families, f) {
			what = append(what, string(f))
		}
	}
	if len(what) > 0 {
		return what
	}
	for _, power := range c.Needs {
		if !slices.Contains(d.Powers, power) {
			what = append(what, power)
		}
	}
	switch {
	case (c.Reads || c.Pages) && len(readable(d)) == 0:
		what = append(what, anyReader)
	case c.Pages && len(pageable(d)) == 0:
		what = append(what, anyList)
	}
	return what
}

func lacks(what string) string {
	switch {
	case slices.Contains(ports.Families, ports.Family(what)):
		return "it does not keep the family " + what
	case what == anyReader:
		return "it declares no reader through which this could be seen"
	case what == anyList:
		return "it has no list through which one could page"
	}
	return "it does not declare " + what
}

// optOut gives the declaration by which a case is left out. What a backend says of itself can always be judged.
func optOut(d *ports.Description, c *Case) *ports.OptOut {
	if c.Topic == describeTopic {
		return nil
	}
	for i := range d.OptOuts {
		o := &d.OptOuts[i]
		if o.Of == c.Topic || o.Of == c.Path() || c.With != "" && (o.Of == c.With || o.Of == topicOf(c.With)) {
			return o
		}
	}
	return nil
}

// optedOut says whether a case is left out by a declaration.
func optedOut(d *ports.Description, path string) bool {
	return slices.ContainsFunc(d.OptOuts, func(o ports.OptOut) bool { return o.Of == path || o.Of == topicOf(path) })
}

func topicOf(path string) string {
	topic, _, _ := strings.Cut(path, "/")
	return topic
}

// readers has the power by which records of a kind are read.
var readers = []struct {
	kind  ports.Kind
	power string
}{
	{ports.KindItem, "ItemReader"},
	{ports.KindEvent, "EventReader"},
	{ports.KindAttempt, "AttemptReader"},
	{ports.KindManifest, "ManifestReader"},
}

// readable lists the kinds whose records can be put into the backend and read from it.
func readable(d *ports.Description) (kinds []ports.Kind) {
	for _, r := range readers {
		if slices.Contains(d.Families, r.kind.Family()) && slices.Contains(d.Powers, r.power) {
			kinds = append(kinds, r.kind)
		}
	}
	return kinds
}

// pageable lists the kinds that can be read and have a list: a backend may read items and manifests by key alone.
func pageable(d *ports.Description) []ports.Kind {
	return slices.DeleteFunc(readable(d), func(k ports.Kind) bool {
		return k == ports.KindItem && optedOut(d, "lists/items") || k == ports.KindManifest && optedOut(d, "lists/manifests")
	})
}
