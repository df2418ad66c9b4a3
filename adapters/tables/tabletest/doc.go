// Package tabletest holds the tests that every store on tables must pass beyond the suite in plugins/conformance: that it holds what a
// store in memory holds after any writes, that a walk through its changes tells exactly what changed, that its lists are whole at
// every page size. They see a store through the ports, and what no port shows through a Place.
//
//	func TestAStoreOnTables(t *testing.T) { tabletest.Run(t, &tabletest.Engine{...}) }
package tabletest
