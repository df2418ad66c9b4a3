package mesh

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"holdfast/ports"
)

// pipe is a text whose end comes when a test lets it.
func pipe(size int, end chan struct{}) io.Reader {
	return io.MultiReader(strings.NewReader(strings.Repeat("x", size)), until(end))
}

type until chan struct{}

func (u until) Read([]byte) (int, error) {
	<-u
	return 0, io.EOF
}

func TestOnlySoManyLargeTextsAreInMemoryAtATime(t *testing.T) {
	t.Parallel()
	l := newLanes()
	l.wait = 20 * time.Millisecond
	end, in := make(chan struct{}), make(chan error, 1)
	first := make(chan *passage, 1)
	go func() {
		_, p, err := l.read(context.Background(), pipe(20<<20, end), 64<<20, new(flag))
		first <- p
		in <- err
	}()
	eventually(t, "the first in the lane of huge ones", func() bool { return len(l.tiers[2].places) == 1 })
	text := strings.Repeat("a", 20<<20) + "the end"
	got, p, err := l.read(context.Background(), strings.NewReader(text), 64<<20, new(flag))
	p.leave()
	if ports.CodeOf(err) != ports.Unavailable || !bytes.HasSuffix(got, []byte("the end")) || len(got) != 2*glance {
		t.Errorf("a second one: %v, %d bytes", err, len(got))
	}
	for name, size := range map[string]int{"a small one": 10 << 10, "a larger one": 10 << 20} {
		got, p, err := l.read(context.Background(), strings.NewReader(strings.Repeat("b", size)), 64<<20, new(flag))
		p.leave()
		if err != nil || len(got) != size {
			t.Errorf("%s: %v, %d bytes", name, err, len(got))
		}
	}
	close(end)
	if err := <-in; err != nil {
		t.Error(err)
	}
	(<-first).leave()
	if _, p, err = l.read(context.Background(), strings.NewReader(text), 64<<20, new(flag)); err != nil {
		t.Errorf("after it: %v", err)
	}
	p.leave()
	for i, tier := range l.tiers {
		if len(tier.places) != 0 {
			t.Errorf("%d places of tier %d are taken", len(tier.places), i)
		}
	}
}

func TestTextsAreReadUpToTheLimitExactly(t *testing.T) {
	t.Parallel()
	l := newLanes()
	const limit = 100_000
	for _, size := range []int{0, 1, 511, 512, 513, 16384, 16385, limit - 1, limit, limit + 1, 2 * limit} {
		text := strings.Repeat("x", size)
		got, p, err := l.read(context.Background(), strings.NewReader(text), limit, new(flag))
		p.leave()
		if over := size > limit; over != (ports.CodeOf(err) == ports.TooLarge) || !over && string(got) != text {
			t.Errorf("%d bytes: %v", size, err)
		} else if over && ports.AsError(err).Size != int64(size) {
			t.Errorf("%d bytes were told as %d", size, ports.AsError(err).Size)
		}
	}
	if _, p, err := l.read(context.Background(), strings.NewReader(strings.Repeat("x", 10*limit)), limit, new(flag)); !errors.Is(err, errEndless) {
		t.Errorf("far too much: %v", err)
	} else {
		p.leave()
	}
}
