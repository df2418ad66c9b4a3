package e2e

import (
	"encoding/json"
	"net/url"
	"slices"

	"holdfast/internal/model"
)

// Compare holds all that a host answers against the model: every record member by member, byte for byte, nothing more and
// nothing less, events in the order of their acceptance.
func Compare(t T, c *Client, m *model.Model) {
	t.Helper()
	items := byKey(t, c.Items(t), "WorkItemHash")
	for _, hash := range m.Items() {
		report(t, "work item "+hash, model.DiffRecords(model.KindItem, some(m.Item(hash)), some(items[hash])))
		delete(items, hash)
	}
	for hash := range items {
		t.Errorf("work item %s is there, and should not be", hash)
	}
	for _, hash := range m.Keys() {
		CompareKey(t, c, m, hash)
	}
	manifests := c.Manifests(t)
	var order []string
	for _, manifest := range slices.Backward(manifests) {
		order = append(order, manifest.Text("Hash"))
	}
	if want := m.Manifests(); !slices.Equal(order, want) {
		t.Errorf("the manifests are %d, oldest first %.5q; want %d, %.5q", len(order), order, len(want), want)
	}
	for hash, manifest := range byKey(t, manifests, "Hash") {
		report(t, "manifest "+hash, model.DiffRecords(model.KindManifest, some(m.Manifest(hash)), some(manifest)))
	}
}

// CompareKey holds one work item with its events and attempts against the model.
func CompareKey(t T, c *Client, m *model.Model, hash string) {
	t.Helper()
	a := c.read(t, "/v1/work-items/"+url.PathEscape(hash), nil)
	report(t, "work item "+hash, model.DiffRecords(model.KindItem, some(m.Item(hash)), some(whole(t, a.WorkItem))))
	report(t, "work item "+hash, model.DiffRecords(model.KindEvent, m.Events(hash), c.Events(t, hash)))
	report(t, "work item "+hash, model.DiffRecords(model.KindAttempt, m.Attempts(hash), c.Attempts(t, hash)))
}

// CompareManifest holds one manifest against the model.
func CompareManifest(t T, c *Client, m *model.Model, hash string) {
	t.Helper()
	a := c.read(t, "/v1/manifests/"+url.PathEscape(hash), nil)
	report(t, "manifest "+hash, model.DiffRecords(model.KindManifest, some(m.Manifest(hash)), some(whole(t, a.Manifest))))
}

func byKey(t T, records []model.Object, key string) map[string]model.Object {
	t.Helper()
	known := map[string]model.Object{}
	for _, r := range records {
		if known[r.Text(key)] != nil {
			t.Errorf("%s %s is listed twice", key, r.Text(key))
		}
		known[r.Text(key)] = r
	}
	return known
}

func whole(t T, text json.RawMessage) model.Object {
	t.Helper()
	if text == nil || string(text) == "null" {
		return nil
	}
	return record(t, "the answer", text)
}

func some(o model.Object) []model.Object {
	if o == nil {
		return nil
	}
	return []model.Object{o}
}

func report(t T, what string, differences []string) {
	t.Helper()
	for _, d := range differences {
		t.Errorf("%s: %s", what, d)
	}
}
