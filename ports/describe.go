package ports

import (
	"reflect"
	"slices"
)

// What a backend says of itself, and which optional powers it has.

// As gives a backend's optional power, if it has it and declared it. The power's name is that of its interface.
func As[T any](b Backend, d Description) (power T, ok bool) {
	power, ok = b.(T)
	if !ok || !slices.Contains(d.Powers, reflect.TypeFor[T]().Name()) {
		var none T
		return none, false
	}
	return power, true
}

// PowersOf lists the names of the powers whose methods a backend has: what a Go backend declares unless it opts out.
func PowersOf(b Backend) []string {
	var names []string
	add := func(has bool, name string) {
		if has {
			names = append(names, name)
		}
	}
	_, local := b.(LocalStore)
	_, items := b.(ItemReader)
	_, events := b.(EventReader)
	_, attempts := b.(AttemptReader)
	_, manifests := b.(ManifestReader)
	_, pruner := b.(Pruner)
	_, exporter := b.(Exporter)
	_, drainer := b.(Drainer)
	_, surveyor := b.(Surveyor)
	add(local, "LocalStore")
	add(items, "ItemReader")
	add(events, "EventReader")
	add(attempts, "AttemptReader")
	add(manifests, "ManifestReader")
	add(pruner, "Pruner")
	add(exporter, "Exporter")
	add(drainer, "Drainer")
	add(surveyor, "Surveyor")
	return names
}

// Description is what a backend says of itself.
type Description struct {
	Kind     string // "sqlite"; the KIND of the configuration's backend block
	Version  string // of the plugin
	Summary  string // one sentence for people
	Families []Family
	Powers   []string // names of the interfaces above; see As
	Options  []Option
	// Slots is how many calls the backend takes at a time, reads and probes included; 0 sets no limit. The host sends Puts
	// of different keys at the same time only where there are slots for it, and never fills the last one with them.
	Slots int
	// Contained says that nothing of a call outlives the process, and that a batch which finds the store elsewhere (Batch.After) has
	// no effect. Then no key stays in doubt once the process is gone; else a Put without an answer may take effect for a minute.
	Contained bool
	OptOuts   []OptOut // what of the contract the backend does not keep, on purpose
}

// OptOut is a part of the contract that a backend does not keep. A power that is not declared needs none.
type OptOut struct {
	Of     string // a topic of the conformance suite, or one case of it: "durability", "put/position"
	Reason string // one sentence for people
}

// Option is one setting of a backend, as data: flags, checks, documentation and redaction come from it.
type Option struct {
	Name     string
	Type     OptionType
	Default  string // as it would be written in the configuration; "" for none
	Required bool
	Secret   bool // never shown
	Help     string
	Example  string
}

// OptionType is the type of an option's value.
type OptionType string

const (
	OptionString   OptionType = "string"
	OptionInt      OptionType = "int"
	OptionBool     OptionType = "bool"
	OptionDuration OptionType = "duration" // text such as "250ms"
	OptionSize     OptionType = "size"     // bytes, a number or text such as "64MiB"
)
