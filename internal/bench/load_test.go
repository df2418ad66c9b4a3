package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast/internal/workload"
)

// The load: net/http clients that keep their connections.

type load struct {
	url  string
	http *http.Client
}

func newLoad(url string) *load {
	return &load{url, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true}}}
}

// measured is what one run of a load gave.
type measured struct {
	rate  float64 // a second
	times []time.Duration
}

func (m measured) percentile(p float64) time.Duration {
	if len(m.times) == 0 {
		return 0
	}
	slices.Sort(m.times)
	return m.times[min(len(m.times)-1, int(p*float64(len(m.times))))]
}

// do sends one request and reads its whole answer.
func (l *load) do(method, path, media string, body []byte, into *bytes.Buffer) error {
	req, err := http.NewRequest(method, l.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if media != "" {
		req.Header.Set("Content-Type", media)
	}
	res, err := l.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	into.Reset()
	if _, err := into.ReadFrom(res.Body); err != nil {
		return err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s %s answers %s: %.300s", method, path, res.Status, into)
	}
	return nil
}

// callers lets so many callers make calls at once until each has made its share, and measures them.
func callers(b *testing.B, n, each int, call func(caller, i int, answer *bytes.Buffer) error) measured {
	b.Helper()
	times := make([][]time.Duration, n)
	var failure atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for c := range n {
		times[c] = make([]time.Duration, 0, each)
		wg.Go(func() {
			var answer bytes.Buffer
			for i := range each {
				sent := time.Now()
				if err := call(c, i, &answer); err != nil {
					failure.CompareAndSwap(nil, err)
					return
				}
				times[c] = append(times[c], time.Since(sent))
			}
		})
	}
	wg.Wait()
	took := time.Since(began)
	if err := failure.Load(); err != nil {
		b.Fatal(err)
	}
	return measured{float64(n*each) / took.Seconds(), slices.Concat(times...)}
}

// singles lets callers write items, each item by one caller, one write after the other.
func (l *load) singles(b *testing.B, all []item, n int) measured {
	b.Helper()
	each := len(all) / n
	return callers(b, n, each*workload.PerItem, func(c, i int, answer *bytes.Buffer) error {
		line := all[c*each+i/workload.PerItem][i%workload.PerItem]
		if err := l.do(http.MethodPost, "/v1/actions", "application/json", line, answer); err != nil {
			return err
		}
		return succeeded(answer.Bytes(), 1)
	})
}

// succeeded checks that an answer has so many successes.
func succeeded(answer []byte, n int) error {
	if got := bytes.Count(answer, []byte(`"Success":true`)); got != n {
		return fmt.Errorf("%d of %d lines succeeded: %.300s", got, n, answer)
	}
	return nil
}

// bulk sends bodies one after the other. accepted is the rate of lines until the last was answered, drained until the local
// store had them too.
func (l *load) bulk(b *testing.B, all [][]byte) (accepted measured, drained float64) {
	b.Helper()
	lines := 0
	var answer bytes.Buffer
	began := time.Now()
	for _, body := range all {
		n := bytes.Count(body, []byte("\n"))
		sent := time.Now()
		err := l.do(http.MethodPost, "/v1/actions", "application/x-ndjson", body, &answer)
		accepted.times = append(accepted.times, time.Since(sent))
		if err == nil {
			err = succeeded(answer.Bytes(), n)
		}
		if err != nil {
			b.Fatal(err)
		}
		lines += n
	}
	accepted.rate = float64(lines) / time.Since(began).Seconds()
	l.settle(b)
	return accepted, float64(lines) / time.Since(began).Seconds()
}

// settle waits until the local store has everything.
func (l *load) settle(b *testing.B) {
	b.Helper()
	var answer bytes.Buffer
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); ; <-tick.C {
		if err := l.do(http.MethodGet, "/v1/status", "", nil, &answer); err != nil {
			b.Fatal(err)
		}
		var status struct{ Families []struct{ Backlog uint64 } }
		if err := json.Unmarshal(answer.Bytes(), &status); err != nil {
			b.Fatal(err)
		}
		backlog := uint64(0)
		for _, f := range status.Families {
			backlog += f.Backlog
		}
		switch {
		case len(status.Families) > 0 && backlog == 0:
			return
		case time.Now().After(end):
			b.Fatalf("%d writes still wait for the local store", backlog)
		}
	}
}

// reads lets readers read items by key.
func (l *load) reads(b *testing.B, hashes []string, readers, each int) measured {
	b.Helper()
	return callers(b, readers, each, func(c, i int, answer *bytes.Buffer) error {
		return l.read(hashes[(c*7919+i*104_729)%len(hashes)], answer)
	})
}

func (l *load) read(hash string, answer *bytes.Buffer) error {
	if err := l.do(http.MethodGet, "/v1/work-items/"+url.PathEscape(hash), "", nil, answer); err != nil {
		return err
	}
	return succeeded(answer.Bytes(), 1)
}

// readsDuring reads by key until the writes are done.
func (l *load) readsDuring(b *testing.B, hashes []string, readers int, writes func()) (read measured) {
	b.Helper()
	done := make(chan struct{})
	go func() { defer close(done); writes() }()
	return callersUntil(b, readers, done, func(c, i int, answer *bytes.Buffer) error {
		return l.read(hashes[(c*7919+i*104_729)%len(hashes)], answer)
	})
}

// callersUntil lets so many callers make calls at once until done, and measures them.
func callersUntil(b *testing.B, n int, done <-chan struct{}, call func(caller, i int, answer *bytes.Buffer) error) (m measured) {
	b.Helper()
	times := make([][]time.Duration, n)
	var failure atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for c := range n {
		wg.Go(func() {
			var answer bytes.Buffer
			for i := 0; ; i++ {
				select {
				case <-done:
					return
				default:
				}
				sent := time.Now()
				if err := call(c, i, &answer); err != nil {
					failure.CompareAndSwap(nil, err)
					return
				}
				times[c] = append(times[c], time.Since(sent))
			}
		})
	}
	<-done
	took := time.Since(began)
	wg.Wait()
	if err := failure.Load(); err != nil {
		b.Fatal(err)
	}
	m.times = slices.Concat(times...)
	m.rate = float64(len(m.times)) / took.Seconds()
	return m
}
