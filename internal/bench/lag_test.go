package bench

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast/internal/workload"
)

// How far a mirror at the head is behind: from a write's answer until its row stands in the mirror's file.

const (
	lagRate  = 50 // writes a second
	lagItems = 80
)

// answeredWrite is a write that was answered.
type answeredWrite struct {
	seq uint64
	at  time.Time
}

// lag writes at a steady rate and watches the mirror's file.
func lag(b *testing.B, l *load, file string) (behind, write measured) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	var wg sync.WaitGroup
	var seen []answeredWrite
	host := l.standing(b).HostID
	wg.Go(func() { seen = watch(ctx, b, file, host) })
	var sent []answeredWrite
	var answer bytes.Buffer
	tick := time.NewTicker(time.Second / lagRate)
	defer tick.Stop()
	for _, it := range items(0, lagItems) {
		for _, line := range it {
			<-tick.C
			began := time.Now()
			err := l.do(http.MethodPost, "/v1/actions", "application/json", line, &answer)
			at := time.Now()
			var a struct {
				Success bool
				Seq     uint64
			}
			if err == nil {
				err = json.Unmarshal(answer.Bytes(), &a)
			}
			if err != nil || !a.Success {
				b.Fatal(err, answer.String())
			}
			sent = append(sent, answeredWrite{a.Seq, at})
			write.times = append(write.times, at.Sub(began))
		}
	}
	l.caughtUp(b)
	cancel()
	wg.Wait()
	next := 0
	for _, w := range sent {
		for next < len(seen) && seen[next].seq < w.seq {
			next++
		}
		if next == len(seen) {
			b.Fatalf("the mirror was not seen to have %d", w.seq)
		}
		behind.times = append(behind.times, max(0, seen[next].at.Sub(w.at)))
	}
	behind.rate, write.rate = lagRate, lagRate
	return behind, write
}

// watch notes each Seq up to which the file has rows, and when that was first seen, until ctx ends.
func watch(ctx context.Context, b *testing.B, file, host string) (seen []answeredWrite) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "query_only(1)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: file, RawQuery: q.Encode()}).String())
	if err != nil {
		b.Error(err)
		return nil
	}
	defer db.Close()
	conn, err := db.Conn(ctx)
	if err != nil {
		b.Error(err)
		return nil
	}
	defer conn.Close()
	text := `SELECT coalesce(max(s), 0) FROM (SELECT max("ChangeSeq") AS s FROM "UVQueueWorkItem" WHERE "ChangeHost" = ?1
		UNION ALL SELECT max("ChangeSeq") FROM "UVQueueWorkItemEvent" WHERE "ChangeHost" = ?1
		UNION ALL SELECT max("ChangeSeq") FROM "UVQueueWorkItemAttempt" WHERE "ChangeHost" = ?1)`
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for version := int64(-1); ; {
		var now int64
		var one answeredWrite
		err := conn.QueryRowContext(ctx, "PRAGMA data_version").Scan(&now)
		if err == nil && now != version {
			version = now
			if err = conn.QueryRowContext(ctx, text, host).Scan(&one.seq); err == nil {
				one.at = time.Now()
				seen = append(seen, one)
			}
		}
		select {
		case <-ctx.Done():
			return seen
		case <-tick.C:
		}
		if err != nil && ctx.Err() == nil {
			b.Error(err)
			return seen
		}
	}
}

// lagRound measures one round on an empty host.
func lagRound(b *testing.B) {
	data := filepath.Join(b.TempDir(), "data")
	host, l := over(b, data, configured(mirrorFirst))
	l.caughtUp(b)
	procs := l.trio(b)
	since := procs.busy()
	behind, write := lag(b, l, mirrorFile(data))
	now := procs.busy()
	table.measured(partFollow, "lag at the head, 50 writes a second", behind).target(target{What: "p50", Most: 20})
	table.measured(partFollow, "  the writes", write)
	for i, who := range trioNames {
		table.add(partCost, "at the head, "+who, "us/write", (now[i]-since[i]).Seconds()*1e6/(lagItems*workload.PerItem))
	}
	table.add(partFollow, "load of the machine, by all that runs", "", loadAverage())
	stop(b, host, l)
}

// loadAverage is how many threads ran or waited for a processor, over the last minute.
func loadAverage() (average float64) {
	text, _ := os.ReadFile("/proc/loadavg")
	_, _ = fmt.Sscan(string(text), &average)
	return average
}
