package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
)

// nearest gives the known name that a misspelt one most likely means, "" when none is near.
func nearest(given string, known []string) string {
	best, least := "", 3
	for _, name := range known {
		distance := levenshtein.Distance(strings.ToLower(given), strings.ToLower(name), nil)
		if distance < least && distance < len(name) {
			best, least = name, distance
		}
	}
	return best
}

// hint is the sentence that follows a wrong name: what was meant, or else what there is.
func hint(given string, known []string) string {
	switch near := nearest(given, known); {
	case near != "":
		return fmt.Sprintf("Did you mean %q?", near)
	case len(known) == 0:
		return "There are none."
	}
	return "There is " + list(known) + "."
}

// list gives names in quotes: "a", "b" and "c".
func list(names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	if last := len(quoted) - 1; last > 0 {
		return strings.Join(quoted[:last], ", ") + " and " + quoted[last]
	}
	return strings.Join(quoted, "")
}

// choice checks a text against the values it may have.
func choice(text string, values []string) error {
	if slices.Contains(values, text) {
		return nil
	}
	return fmt.Errorf("%q is not one of its values. %s", text, hint(text, values))
}
