package ports_test

import (
	"encoding/base64"
	"testing"

	"pgregory.net/rapid"

	"holdfast/ports"
)

func TestACursorComesBackFromItsToken(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := ports.Cursor{
			Sort: rapid.String().Draw(t, "sort"),
			Key:  rapid.String().Draw(t, "key"),
			Kind: rapid.SampledFrom(append([]ports.Kind{""}, ports.Kinds...)).Draw(t, "kind"),
			Num:  rapid.Int64().Draw(t, "number"),
		}
		got, err := ports.ParseCursor(want.Token())
		if err != nil || *got != want {
			t.Fatalf("%+v comes back as %+v, %v", want, got, err)
		}
	})
}

func TestATokenThatIsNotOursIsInvalid(t *testing.T) {
	t.Parallel()
	if c, err := ports.ParseCursor(""); c != nil || err != nil {
		t.Errorf("no token gives %v, %v", c, err)
	}
	for _, token := range []string{"!", "a", base64.RawURLEncoding.EncodeToString([]byte(`{"s":`)), base64.RawURLEncoding.EncodeToString([]byte(`[1]`)), base64.RawURLEncoding.EncodeToString([]byte(`{"s":7}`))} {
		if c, err := ports.ParseCursor(token); c != nil || ports.CodeOf(err) != ports.Invalid {
			t.Errorf("%q gives %v, %v", token, c, err)
		}
	}
}

func TestEachKindBelongsToTheFamilyOfItsActions(t *testing.T) {
	t.Parallel()
	for _, k := range ports.Kinds {
		want := ports.Queue
		if k == ports.KindManifest {
			want = ports.Manifest
		}
		if k.Family() != want || ports.TableOf(k).Kind != k {
			t.Errorf("%s belongs to %s and the table of %s", k, k.Family(), ports.TableOf(k).Kind)
		}
	}
	for _, a := range append(ports.Writes, ports.Reads...) {
		want := ports.Queue
		if a[:3] == "MS_" {
			want = ports.Manifest
		}
		if a.Family() != want {
			t.Errorf("%s belongs to %q", a, a.Family())
		}
	}
	if ports.Action("QP_Nothing").Family() != "" || ports.GetEvents.IsWrite() || !ports.RemoveManifest.IsWrite() {
		t.Error("an unknown action has a family, or reads and writes are mixed up")
	}
}
