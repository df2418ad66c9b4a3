package stock

// A beacon that polls: one question at once and one each interval, none while every slot is taken, and a heartbeat beside.

import (
	"context"
	"encoding/json"
	"net/http"
	"time"
)

// startPolling registers over HTTP and polls from then on.
func (b *Beacon) startPolling() error {
	if err := b.register(); err != nil {
		return err
	}
	b.change(func() { b.running = true })
	b.poll()
	return nil
}

// poll begins to poll and to beat, and asks once at once. What polls already goes on.
func (b *Beacon) poll() {
	poller := b.every(b.config.PollInterval, b.ask)
	beater := b.every(b.config.HeartbeatInterval, b.beatHTTP)
	b.change(func() { b.poller, b.beater = poller, beater })
	b.spawn(b.ask)
}

// every does f each time the interval has passed, whether or not the last one has ended.
func (b *Beacon) every(interval time.Duration, f func()) (end func()) {
	ctx, end := context.WithCancel(b.life)
	b.spawn(func() {
		for pause(ctx, b.config.Clock, interval) {
			b.spawn(f)
		}
	})
	return end
}

func (b *Beacon) endPolling() { b.endLoop(&b.poller) }
func (b *Beacon) endBeating() { b.endLoop(&b.beater) }

func (b *Beacon) endLoop(loop *func()) {
	b.change(func() {
		if *loop != nil {
			(*loop)()
			*loop = nil
		}
	})
}

// ask polls once. Errors are met with the next interval.
func (b *Beacon) ask() {
	b.mu.Lock()
	id := b.id
	idle := b.running && id != "" && b.active < b.config.MaxConcurrent
	b.mu.Unlock()
	if !idle {
		return
	}
	b.change(func() { b.counts.Polls++ })
	answer, err := b.request(b.life, http.MethodPost, "/Beacon/Work/Poll", map[string]any{"BeaconID": id})
	if err != nil {
		return
	}
	var found struct{ WorkItem *Item }
	if json.Unmarshal(answer, &found) == nil && found.WorkItem != nil {
		b.take(found.WorkItem)
	}
}

func (b *Beacon) beatHTTP() {
	b.mu.Lock()
	id, running := b.id, b.running
	b.mu.Unlock()
	if !running || id == "" {
		return
	}
	b.change(func() { b.counts.Beats++ })
	if _, err := b.request(b.life, http.MethodPost, "/Beacon/"+id+"/Heartbeat", map[string]any{}); err != nil {
		b.config.Log("heartbeat failed: " + err.Error())
	}
}
