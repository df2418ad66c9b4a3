package httpapi

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/go-hclog"

	"holdfast/core"
)

// BenchmarkStream is what the front door itself costs a line, with nothing behind it.
func BenchmarkStream(b *testing.B) {
	c := bench(b)
	const lines = 1000
	one := `{"Action":"QP_UpsertWorkItem","Settings":{"WorkItem":{"WorkItemHash":"a","Note":"` + strings.Repeat("x", 600) + `"}}}` + "\n"
	body := strings.Repeat(one, lines)
	b.ReportAllocs()
	for b.Loop() {
		c.post(b, typeNDJSON, body)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/lines, "ns/line")
}

// BenchmarkSingle is what it costs one action, with 64 callers and net/http's own client.
func BenchmarkSingle(b *testing.B) {
	c := bench(b)
	b.SetParallelism(32)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c.post(b, typeJSON, upsert)
		}
	})
}

// nothing answers every call at once and keeps none.
type nothing struct {
	*fakeHost
	n atomic.Uint64
}

func (h *nothing) Begin(core.Call) Promise {
	return &fakePromise{host: h.fakeHost, answer: core.Answer{Seq: h.n.Add(1), Backend: "local"}}
}

type benchClient struct {
	url  string
	http *http.Client
}

func bench(b *testing.B) *benchClient {
	api, err := New(Config{Host: &nothing{fakeHost: &fakeHost{}}, Loopback: true, Logger: hclog.NewNullLogger()})
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	b.Cleanup(transport.CloseIdleConnections)
	return &benchClient{start(b, api).URL, &http.Client{Transport: transport}}
}

func (c *benchClient) post(b *testing.B, contentType, body string) {
	got, err := c.http.Post(c.url+"/v1/actions", contentType, strings.NewReader(body))
	if err != nil {
		b.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, got.Body); err != nil || got.StatusCode != http.StatusOK {
		b.Fatal(got.StatusCode, err)
	}
	got.Body.Close()
}
