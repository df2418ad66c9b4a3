// Package templates writes a new plugin's project: a working backend that keeps history in memory and passes the conformance
// suite, for an author to put a store of his own in the place of its map.
//
//	files, err := templates.Render(templates.Options{Name: "tape", Lang: templates.Go, Source: "/src/holdfast"})
//	err = templates.Write("tape", files)
//
// The folders go, node and python hold the projects as they are, for a backend of the kind "tape"; rendering gives them another
// kind. Each is a whole project that this repository builds, checks and tests, so that what an author gets is what was tested.
package templates
