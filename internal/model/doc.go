// Package model is what history must be after a sequence of actions: the reference that tests compare everything else with.
//
// It is written from the decision tables alone, keeps everything in maps of ordered members with raw bytes, and prefers
// what is obviously right to what is fast. It imports nothing of the project, so that it cannot share a mistake with it.
//
//	m := model.New(model.Options{})
//	answer := m.Apply("QP_UpsertWorkItem", json.RawMessage(`{"WorkItem":{"WorkItemHash":"w","Status":"Pending"}}`))
//	for _, difference := range model.DiffItem(m.Item("w"), got) {
//		t.Error(difference)
//	}
//
// What it leaves out on purpose: times and order keys that a host stamps, and writes of a hub that was joined (early and
// late ones), whose outcome depends on when they arrive.
package model
