package conformance

import (
	"fmt"
	"slices"
	"strings"

	"holdfast/ports"
)

// Report is what a run of the suite found.
type Report struct {
	Description ports.Description
	Results     []Result

	of int // cases of the suite
}

// Contract is what a backend is certified for.
const Contract = "holdfast.backend.v1"

// Count says how many cases ended in an outcome.
func (r *Report) Count(o Outcome) (n int) {
	for i := range r.Results {
		if r.Results[i].Outcome == o {
			n++
		}
	}
	return n
}

// Tried is how many cases ran: those that passed or failed.
func (r *Report) Tried() int { return r.Count(Passed) + r.Count(Failed) }

// OK says that no case failed.
func (r *Report) OK() bool { return r.Count(Failed) == 0 }

// Certified says that the whole suite was asked for, something of it ran, and nothing failed.
func (r *Report) Certified() bool {
	return r.OK() && r.Count(Passed) > 0 && len(r.Results) == r.of
}

// Badge is the line for an author to paste, or the line that says why there is none:
//
//	certified holdfast.backend.v1: 61/61, opt-outs: none
//	certified holdfast.backend.v1: 14/14, opt-outs: LocalStore (not offered), durability (keeps everything in memory)
//	not certified: 2 of 61 cases failed
func (r *Report) Badge() string {
	switch tried := r.Tried(); {
	case !r.OK():
		return fmt.Sprintf("not certified: %d of %d cases failed", r.Count(Failed), tried)
	case len(r.Results) < r.of:
		return fmt.Sprintf("not certified: only %d of the %d cases were asked for, none of them failed", len(r.Results), r.of)
	case tried == 0:
		return "not certified: every case was left out"
	default:
		line := fmt.Sprintf("certified %s: %d/%d, opt-outs: %s", Contract, tried, tried, strings.Join(r.optOuts(), ", "))
		if untried := r.untried(); len(untried) > 0 {
			line += ", untried: " + strings.Join(untried, ", ")
		}
		return line
	}
}

// optOuts lists what was left out because of the backend, each with its reason.
func (r *Report) optOuts() (list []string) {
	var families, powers, declared []string
	add := func(list []string, word string) []string {
		if slices.Contains(list, word) {
			return list
		}
		return append(list, word)
	}
	for _, result := range r.Results {
		switch result.Outcome {
		case NotOffered:
			for _, word := range missing(&r.Description, result.Case) {
				switch {
				case slices.Contains(ports.Families, ports.Family(word)):
					families = add(families, word)
				case word != anyReader && word != anyList: // the readers are named by other cases
					powers = add(powers, word)
				}
			}
		case OptedOut:
			if o := optOut(&r.Description, result.Case); o != nil {
				declared = add(declared, fmt.Sprintf("%s (%s)", o.Of, o.Reason))
			}
		}
	}
	if len(families) > 0 {
		list = append(list, strings.Join(families, ", ")+" (not kept)")
	}
	if len(powers) > 0 {
		list = append(list, strings.Join(powers, ", ")+" (not offered)")
	}
	if list = append(list, declared...); len(list) == 0 {
		list = []string{"none"}
	}
	return list
}

func (r *Report) untried() (list []string) {
	for _, result := range r.Results {
		if result.Outcome == Untried {
			list = append(list, result.Case.Path())
		}
	}
	return list
}
