package httpapi

import (
	"bufio"
	"context"
	"net/http"
	"strconv"

	"holdfast/core"
	"holdfast/ports"
)

// RowsTrailer ends a whole export with the number of its lines. A stream without it was cut.
const RowsTrailer = "Holdfast-Rows"

// exportPage is how many rows are asked for at a time.
const exportPage = 500

// export streams history as lines of {Action, Settings}, in the order of natural keys, an item before its events and attempts.
// With ?stamps=true each has a member Stamp beside its record with what the first write fixed. An error in the middle is a last
// line {"Error": {"Code", "Reason"}}.
func (a *API) export(w http.ResponseWriter, r *http.Request, _ caller) {
	p := paramsOf(r)
	families, stamps := ports.Families, p.flag("stamps")
	if name := p.text("family"); name != "" {
		family, err := familyOf(name)
		if err != nil {
			p.fault(err)
		}
		families = []ports.Family{family}
	}
	if err := p.done(); err != nil {
		refuse(w, err)
		return
	}
	page, err := a.exportPage(r.Context(), families[0], nil)
	if err != nil {
		refuse(w, err) // nothing was said yet, so that it can be said properly
		return
	}
	h := w.Header()
	h.Set("Content-Type", typeNDJSON)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Trailer", RowsTrailer)
	out := bufio.NewWriterSize(patientWriter{w, http.NewResponseController(w)}, 32<<10)
	e := exporter{out: out, stamps: stamps}
	for i, family := range families {
		if i > 0 {
			page, err = a.exportPage(r.Context(), family, nil)
		}
		for err == nil {
			if !e.rows(page.Rows) {
				return // nobody reads any more
			}
			if page.Next == nil || a.draining.Err() != nil {
				break
			}
			page, err = a.exportPage(r.Context(), family, page.Next)
		}
		if a.draining.Err() != nil {
			err = ports.Errorf(ports.Unavailable, "export", stopping)
		}
		if err != nil {
			e.fault(err)
			break
		}
	}
	if out.Flush() == nil && err == nil {
		h.Set(RowsTrailer, strconv.Itoa(e.n))
	}
}

func (a *API) exportPage(ctx context.Context, family ports.Family, after *ports.Cursor) (ports.Page, error) {
	return a.host.Export(ctx, ports.ExportQuery{Family: family, After: after, Limit: exportPage})
}

// exporter writes rows as the writes that would make them.
type exporter struct {
	out    *bufio.Writer
	stamps bool
	n      int
}

// replays is how a record of each kind is sent again.
var replays = map[ports.Kind]ports.Action{
	ports.KindItem:     ports.UpsertWorkItem,
	ports.KindEvent:    ports.AppendEvent,
	ports.KindAttempt:  ports.InsertAttempt,
	ports.KindManifest: ports.UpsertManifest,
}

// rows writes a page and says whether it still can.
func (e *exporter) rows(rows []ports.Row) bool {
	for i := range rows {
		row := &rows[i]
		if row.Gone {
			continue
		}
		b := append(e.out.AvailableBuffer(), `{"Action":"`...)
		b = append(b, replays[row.Kind]...)
		b = append(b, `","Settings":{"`...)
		b = append(b, row.Kind...) // the member is called as the kind is
		b = append(b, `":`...)
		b = append(b, row.Body...)
		if e.stamps {
			b = appendStamp(b, &row.First)
		}
		if _, err := e.out.Write(append(b, "}}\n"...)); err != nil {
			return false
		}
		e.n++
	}
	return true
}

func appendStamp(b []byte, f *ports.First) []byte {
	b = append(b, `,"Stamp":{`...)
	first := true
	for _, m := range []struct{ name, value string }{
		{"ReceivedAt", f.ReceivedAt}, {"OrderKey", f.OrderKey}, {"EnqueuedKey", f.EnqueuedKey},
		{"EmittedAt", f.EmittedAt}, {"Actor", f.Actor}, {"Origin", f.Origin},
	} {
		if m.value == "" {
			continue
		}
		if !first {
			b = append(b, ',')
		}
		first = false
		b = append(append(append(b, '"'), m.name...), `":`...)
		b = ports.AppendQuoted(b, m.value)
	}
	return append(b, '}')
}

func (e *exporter) fault(err error) {
	known := core.Refusal(err).Err
	b := append(e.out.AvailableBuffer(), `{"Error":{"Code":`...)
	b = ports.AppendQuoted(b, string(known.Code))
	b = append(b, `,"Reason":`...)
	b = ports.AppendQuoted(b, known.Error())
	_, _ = e.out.Write(append(b, "}}\n"...)) // the missing trailer says the same
}
