package process

import (
	"testing"

	"github.com/hashicorp/go-hclog"

	"holdfast/ports"
)

func TestAPluginTellsWhatChanged(t *testing.T) {
	t.Parallel()
	p := run(t, hclog.NewNullLogger())
	row := ports.Row{Kind: ports.KindItem, Key: "a", Body: []byte("{}"), Change: ports.Change{Host: "h", Seq: 7}}
	if _, err := p.Put(t.Context(), ports.Batch{Family: ports.Queue, Rows: []ports.Row{row}}); err != nil {
		t.Fatal(err)
	}
	page, err := p.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].Change != row.Change || page.End == nil || page.Through.Seqs["h"] != 7 {
		t.Fatalf("%+v, %v", page, err)
	}
	if page, err = p.Changes(t.Context(), ports.ChangesQuery{Family: ports.Queue, After: page.Through}); err != nil || len(page.Rows) != 0 {
		t.Errorf("after the last: %+v, %v", page, err)
	}
}
