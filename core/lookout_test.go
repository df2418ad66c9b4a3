package core

import (
	"context"
	"testing"
	"time"

	"holdfast/ports"
)

// fleet is a mesh of which nobody knows but that it changes.
type fleet struct {
	version uint64
	changed chan struct{}
}

func (f *fleet) Watch(ctx context.Context, since uint64) (ports.Beacons, error) {
	if since == f.version {
		select {
		case <-f.changed:
			f.version++
		case <-ctx.Done():
			return ports.Beacons{}, ctx.Err()
		}
	}
	return ports.Beacons{Version: f.version}, nil
}

func (f *fleet) Dispatch(context.Context, ports.Work) (ports.WorkAnswer, error) {
	return ports.WorkAnswer{}, nil
}

func TestAFollowerWhoseBeaconComesOrGoesIsProbedAtOnce(t *testing.T) {
	t.Parallel()
	playWith(t, withFollower(nil), func(t *testing.T, s *stage) {
		s.catchesUp("m1", 10*time.Second)
		m, f := s.mirror("m1"), &fleet{1, make(chan struct{})}
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.host.LookOut(ctx, f)
		}()
		s.in(3 * time.Second)
		for _, c := range []struct {
			probe error
			state string
			most  time.Duration
		}{
			{ports.Errorf(ports.Unavailable, "m1", "the beacon is not connected"), "waiting-for-beacon", 100 * time.Millisecond},
			{nil, "bootstrapped", time.Second}, // the second good probe has its own time
		} {
			m.change(func(m *mirror) { m.probe = c.probe })
			f.changed <- struct{}{}
			if !s.until(c.most, func() bool { return s.follower("m1", ports.Queue).State == c.state }) {
				t.Errorf("want %s within %s; it is told as %+v", c.state, c.most, s.follower("m1", ports.Queue))
			}
			s.in(3 * time.Second)
		}
		end()
		<-ended
	})
}
